"""Log records of requests: one at the start and one at the end, and the fields that all log records have."""

import json
import os
import re
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog

from cdb_rest.observe.request_context import ClientGoneError, RequestContext, current_context

Event = MutableMapping[str, Any]

MAX_PATH_LENGTH = 1000
# Characters that would end a line or control a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class _Process:
    """The id of this process, cached to save a system call for each record."""

    def __init__(self) -> None:
        self.update()
        os.register_at_fork(after_in_child=self.update)

    def update(self) -> None:
        self.number = os.getpid()


_process = _Process()


def complete(_logger: Any, method: str, event: Event) -> Event:
    """Add the fields of every record: time, level, logger, event, process id and request id. A structlog processor.

    A value in the event takes precedence. Without a request there is no request id.
    """
    context = current_context.get()
    whole = {
        "time": datetime.now(UTC),
        "level": event.pop("level", method),
        "logger": event.pop("logger", "cdb"),
        "event": event.pop("event", ""),
        "request_id": context.request_id if context else None,
        "process": _process.number,
    }
    if context is None and not event.get("request_id"):
        del whole["request_id"]
    whole.update(event)
    return whole


def as_json(_logger: Any, _method: str, event: Event) -> bytes:
    """An event as a line of JSON, with the newline. A structlog processor."""
    try:
        return orjson.dumps(event, default=repr, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # Text that is not valid Unicode, or an integer beyond 64 bits.
        return json.dumps(event, default=str).encode() + b"\n"


def escape_control_characters(_logger: Any, _method: str, event: Event) -> Event:
    """Escape control characters, so that text of a client cannot end a line or control the terminal.

    This is a structlog processor. It also formats the time, which `complete` must have added. The field `exception` keeps
    its line ends. Values that are not texts, and tracebacks, which the renderer adds later, stay as they are.
    """
    event["time"] = event["time"].isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = escaped_lines(value) if name == "exception" else _escaped(value)
    return event


def escaped_lines(text: str) -> str:
    """A text of several lines with escaped control characters, except for the line ends."""
    return "\n".join(map(_escaped, text.split("\n")))


def _escaped(text: str) -> str:
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class RequestLog:
    """An observer that writes two log records for each request.

    Requests for health checks and metrics are logged at level DEBUG, because they come every few seconds. The
    record of their end has a higher level if the status is 500 or above, or if the application raised an exception.
    """

    def __init__(self) -> None:
        self._logger = structlog.get_logger().bind(logger="cdb.request")

    def began(self, context: RequestContext) -> None:
        """Log the start of a request."""
        write = self._logger.debug if _is_probe(context) else self._logger.info
        write("started", method=context.method, path=_path(context))

    def ended(self, context: RequestContext, error: BaseException | None) -> None:
        """Log the end of a request: status, duration and size of the response."""
        more: dict[str, Any] = {}
        if isinstance(error, ClientGoneError):
            more["broke_off"] = str(error)
        elif error is not None:
            more["broke_off"], more["exc_info"] = type(error).__name__, error
        self._level(context, error)(
            "finished",
            method=context.method,
            path=_path(context),
            route=context.route,
            status=context.status,
            duration_ms=round(1000 * context.seconds(), 3),
            database_ms=round(1000 * context.database, 3),
            queries=context.queries,
            actor=context.actor,
            bytes=context.bytes,
            **more,
        )

    def _level(self, context: RequestContext, error: BaseException | None) -> Any:
        """The log method: error for a bug, warning for overload or if the database is down, else info or debug.

        Status 500 is a bug, and so is an exception other than `ClientGoneError` and `OSError`.
        """
        if context.status == 500 or not (error is None or isinstance(error, ClientGoneError | OSError)):
            return self._logger.error
        if context.status > 500:
            return self._logger.warning
        return self._logger.debug if _is_probe(context) else self._logger.info


def _is_probe(context: RequestContext) -> bool:
    return context.path.startswith(("/health/", "/metrics"))


def _path(context: RequestContext) -> str:
    """The decoded path. WSGI passes its bytes as Latin-1."""
    path = context.path[:MAX_PATH_LENGTH]
    return path if path.isascii() else path.encode("latin-1", "replace").decode("utf-8", "replace")
