"""How records are written: as JSON for programs or as lines for people, by structlog, from all loggers to one place."""

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.tracebacks import ExceptionDictTransformer

from cdb import env
from cdb_rest.observe import records
from cdb_rest.observe.lines import STANDARD_ERROR, LineHandler, Lines

FRAMES = 50
# How gunicorn words it.
STATSD_FAILED = "Error sending message to statsd"


def configuration() -> dict[str, Any]:
    """The configuration of Python's `logging`, in the form of its `dictConfig`; sets structlog up to the same."""
    values = env.read()
    level = getattr(logging, values["CDB_LOG_LEVEL"].upper())
    path = values["CDB_LOG_FILE"]
    lines = Lines(Path(path) if path not in ("", "-") else None)
    processors = _processors(values["CDB_LOG_FORMAT"], is_for_people=values["DEBUG"] or _is_read_by_people(path))
    structlog.configure(
        processors=[*processors, _as_bytes],  # type: ignore[list-item]  # behind the renderer an event is a line
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    return _of_logging(lines, processors, level)


def _of_logging(lines: Lines, processors: list[Any], level: int) -> dict[str, Any]:
    """Who may write from which level on, and that all of it goes the same way as structlog's."""
    # Of libraries, what somebody may have to act on.
    least = max(logging.WARNING, level)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": ProcessorFormatter,
                "processors": [ProcessorFormatter.remove_processors_meta, *processors, _as_text],
                "foreign_pre_chain": [
                    structlog.stdlib.add_log_level,
                    structlog.stdlib.add_logger_name,
                    structlog.stdlib.ExtraAdder(allow=["request_id"]),
                ],
            }
        },
        "filters": {"now_and_then": {"()": NowAndThen}},
        "handlers": {"lines": {"()": LineHandler, "lines": lines, "formatter": "line"}},
        "root": {"handlers": ["lines"], "level": least},
        "loggers": {
            "cdb": {"level": level},
            "cdb_rest": {"level": level},
            # Instead of its own line, once the application is loaded.
            "gunicorn.error": {"handlers": [], "propagate": True, "filters": ["now_and_then"]},
            "django": {"handlers": [], "level": least},
            # A client's mistake is no event of ours; only what answers 500 is.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
        },
    }


class NowAndThen(logging.Filter):
    """Lets a message that comes with each request, such as that nobody listens to its figures, pass once in a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is to be written."""
        if record.msg != STATSD_FAILED:
            return True
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 60
        return True


def _is_read_by_people(path: str) -> bool:
    return path in ("", "-") and os.isatty(STANDARD_ERROR)


def _processors(form: str, *, is_for_people: bool) -> list[Any]:
    """What is done to an event until it is a line."""
    if form == "console" or (form == "auto" and is_for_people):
        colours = sys.stderr is not None and sys.stderr.isatty()
        renderer = structlog.dev.ConsoleRenderer(
            colors=colours, timestamp_key="time", exception_formatter=structlog.dev.plain_traceback
        )
        return [records.complete, records.harmless, renderer]
    # Never the values of variables: a body or a password may be among them.
    traceback = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False, max_frames=FRAMES))
    return [records.complete, traceback, records.as_json]


def _as_bytes(_logger: Any, _method: str, line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode("utf-8", "backslashreplace") + b"\n"


def _as_text(_logger: Any, _method: str, line: str | bytes) -> str:
    return line if isinstance(line, str) else line.decode().removesuffix("\n")
