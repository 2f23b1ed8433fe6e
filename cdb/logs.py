"""The logging configuration: structlog formats the records of all loggers as JSON or text.

The only output is CDB_LOG_FILE or standard error.
"""

import io
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.tracebacks import ExceptionDictTransformer

from cdb import env
from cdb_rest.observe import request_log
from cdb_rest.observe.log_files import STANDARD_ERROR, LogFile, LogFileHandler

FRAMES = 50
# gunicorn's message when it can't reach the statsd server.
STATSD_FAILED = "Error sending message to statsd"


def configuration() -> dict[str, Any]:
    """The configuration of Python's `logging`, for its `dictConfig`. Also configures structlog in the same way."""
    values = env.read()
    level = getattr(logging, values["CDB_LOG_LEVEL"].upper())
    path = values["CDB_LOG_FILE"]
    lines = LogFile(Path(path) if path not in ("", "-") else None)
    processors = _processors(values["CDB_LOG_FORMAT"], human_readable=values["DEBUG"] or _is_terminal(path))
    structlog.configure(
        processors=[*processors, _as_bytes],  # type: ignore[list-item]  # after the renderer an event is a line
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=True,
    )
    return _logging_config(lines, processors, level)


def _logging_config(lines: LogFile, processors: list[Any], level: int) -> dict[str, Any]:
    """The `dictConfig` that sends the records of all loggers to `lines`, each logger with its level."""
    # Libraries log only warnings and errors.
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
        "filters": {"rate_limit": {"()": RateLimitFilter}},
        "handlers": {"lines": {"()": LogFileHandler, "file": lines, "formatter": "line"}},
        "root": {"handlers": ["lines"], "level": least},
        "loggers": {
            "cdb": {"level": level},
            "cdb_rest": {"level": level},
            # Replaces gunicorn's own handler when the application is loaded.
            "gunicorn.error": {"handlers": [], "propagate": True, "filters": ["rate_limit"]},
            "django": {"handlers": [], "level": least},
            # Only responses with status 500 are logged, not errors of clients.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
        },
    }


class RateLimitFilter(logging.Filter):
    """A filter that passes gunicorn's message about a failed statsd packet at most once a minute.

    All other records pass. gunicorn logs that message for each request while the statsd server does not respond.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        if record.msg != STATSD_FAILED:
            return True
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 60
        return True


def _is_terminal(path: str) -> bool:
    return path in ("", "-") and os.isatty(STANDARD_ERROR)


def _processors(form: str, *, human_readable: bool) -> list[Any]:
    """The structlog processors that turn an event into a line, in their order."""
    if form == "console" or (form == "auto" and human_readable):
        colours = sys.stderr is not None and sys.stderr.isatty()
        renderer = structlog.dev.ConsoleRenderer(
            colors=colours, timestamp_key="time", exception_formatter=_write_traceback
        )
        return [request_log.complete, request_log.escape_control_characters, renderer]
    # Tracebacks do not show the values of variables, which may include request bodies and passwords.
    traceback = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False, max_frames=FRAMES))
    return [request_log.complete, traceback, request_log.as_json]


def _write_traceback(stream: TextIO, exc_info: Any) -> None:
    """Write a traceback. The messages of exceptions may have text of a client, so control characters are escaped."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, exc_info)
    stream.write(request_log.escaped_lines(text.getvalue()))


def _as_bytes(_logger: Any, _method: str, line: str | bytes) -> bytes:
    return line if isinstance(line, bytes) else line.encode("utf-8", "backslashreplace") + b"\n"


def _as_text(_logger: Any, _method: str, line: str | bytes) -> str:
    return line if isinstance(line, str) else line.decode().removesuffix("\n")
