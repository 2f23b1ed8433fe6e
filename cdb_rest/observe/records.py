"""Records of requests: what every record says, and the two of each request, when it started and when it finished."""

import json
import os
import re
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog

from cdb_rest.observe.exchange import ClientGoneError, Exchange, current

Event = MutableMapping[str, Any]

LONGEST_PATH = 1000
# What would end a line, or steer a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _Process:
    """The number of this process, without asking the kernel for each record."""

    def __init__(self) -> None:
        self.note()
        os.register_at_fork(after_in_child=self.note)

    def note(self) -> None:
        self.number = os.getpid()


_process = _Process()


def complete(_logger: Any, method: str, event: Event) -> Event:
    """Add to an event what every record has: when, how grave, from where, and the request that it belongs to."""
    exchange = current.get()
    whole = {
        "time": datetime.now(UTC),
        "level": event.pop("level", method),
        "logger": event.pop("logger", "cdb"),
        "event": event.pop("event", ""),
        "request_id": exchange.request_id if exchange else None,
        "process": _process.number,
    }
    if exchange is None and not event.get("request_id"):
        del whole["request_id"]
    whole.update(event)
    return whole


def as_json(_logger: Any, _method: str, event: Event) -> bytes:
    """An event as a line of JSON."""
    try:
        return orjson.dumps(event, default=repr, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # A text that is no Unicode, or a number beyond 64 bits.
        return json.dumps(event, default=str).encode() + b"\n"


def harmless(_logger: Any, _method: str, event: Event) -> Event:
    """Let what came from a client neither end a line nor steer the terminal, where lines are for people."""
    event["time"] = event["time"].isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    for name, value in event.items():
        if isinstance(value, str) and name != "exception":
            event[name] = CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), value)
    return event


class Records:
    """An observer that writes two records of each request.

    Probes of the service's health that find all well are written at the level of debugging alone, as they come every second.
    """

    def __init__(self) -> None:
        self._logger = structlog.get_logger().bind(logger="cdb.request")

    def began(self, exchange: Exchange) -> None:
        """Write that a request has come."""
        write = self._logger.debug if _is_probe(exchange) else self._logger.info
        write("started", method=exchange.method, path=_path(exchange))

    def ended(self, exchange: Exchange, error: BaseException | None) -> None:
        """Write how it was answered, and how long that took."""
        more: dict[str, Any] = {}
        if isinstance(error, ClientGoneError):
            more["broke_off"] = str(error)
        elif error is not None:
            more["broke_off"], more["exc_info"] = type(error).__name__, error
        self._level(exchange, error)(
            "finished",
            method=exchange.method,
            path=_path(exchange),
            route=exchange.route,
            status=exchange.status,
            duration_ms=round(1000 * exchange.seconds(), 3),
            database_ms=round(1000 * exchange.database, 3),
            queries=exchange.queries,
            actor=exchange.actor,
            bytes=exchange.bytes,
            **more,
        )

    def _level(self, exchange: Exchange, error: BaseException | None) -> Any:
        """500 is a fault of ours, 503 and 504 tell of overload or a database that is away, and all else is usual."""
        if exchange.status == 500 or not (error is None or isinstance(error, ClientGoneError | OSError)):
            return self._logger.error
        if exchange.status > 500:
            return self._logger.warning
        return self._logger.debug if _is_probe(exchange) else self._logger.info


def _is_probe(exchange: Exchange) -> bool:
    return exchange.path.startswith(("/health/", "/metrics"))


def _path(exchange: Exchange) -> str:
    """The path as a client means it; WSGI shows its bytes as Latin-1."""
    path = exchange.path[:LONGEST_PATH]
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")
