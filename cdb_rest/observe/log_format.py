"""The formats of log records: one JSON object on a line, or text for people. Each has the request id, if there is a request.

A record may have further members: `extra={"fields": {...}}`.
"""

import json
import logging
import re
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import Any

import orjson

from cdb_rest.observe.request_context import current_context

# Characters that would end a line or control a terminal.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, event, request id, process, its fields, and a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, without the newline."""
        members = self.members(record)
        try:
            line = orjson.dumps(members, default=repr, option=orjson.OPT_UTC_Z).decode()
        except TypeError:
            # A number of more than 64 bits, or a text that UTF-8 cannot encode.
            line = json.dumps(members, default=str)
        # JSON permits some control characters and line separators inside strings.
        return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", line)

    def members(self, record: logging.LogRecord) -> dict[str, Any]:
        """The members of the JSON object, in their order."""
        context = current_context.get()
        request_id = context.request_id if context else getattr(record, "request_id", None)
        members: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            # A message may quote text of a client that UTF-8 cannot encode.
            "event": record.getMessage().encode(errors="replace").decode(),
        }
        if request_id:
            members["request_id"] = request_id
        members["process"] = record.process
        members |= getattr(record, "fields", {})
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info).encode(errors="replace").decode()
        return members


class TextFormatter(JsonFormatter):
    """Formats a record for people. Control characters, which a client may have sent, are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, and a traceback in the lines after it."""
        members = self.members(record)
        time, traceback = members.pop("time"), members.pop("exception", "")
        level, name, event = (members.pop(item) for item in ("level", "logger", "event"))
        rest = " ".join(f"{name}={value}" for name, value in members.items())
        line = f"{time:%Y-%m-%d %H:%M:%S}.{time.microsecond // 1000:03} [{level:8}] {event} [{name}] {rest}"
        return "\n".join(_escaped(part) for part in (line, *traceback.splitlines()))


class RotatedFileHandler(WatchedFileHandler):
    """Writes records to a file, and opens it again after logrotate has renamed it. While the disk is full, records are lost."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        try:
            super().emit(record)
        except OSError:
            # It comes from closing the old file, to which a full disk has denied the last record.
            self.handleError(record)


def _escaped(text: str) -> str:
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
