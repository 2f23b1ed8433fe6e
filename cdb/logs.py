"""The configuration of Python's logging: all loggers write JSON or text to CDB_LOG_FILE or to standard error."""

import logging
import sys
from pathlib import Path
from typing import Any

from cdb import env


def configuration() -> dict[str, Any]:
    """The configuration for `logging.config.dictConfig`, by the settings."""
    # What no format needs, and what takes a third of the time of a record: the caller, the thread and the like.
    logging._srcfile = None
    logging.logThreads = logging.logMultiprocessing = False
    values = env.read()
    level = values["CDB_LOG_LEVEL"].upper()
    path = "" if values["CDB_LOG_FILE"] == "-" else values["CDB_LOG_FILE"]
    is_for_people = values["DEBUG"] or (not path and sys.stderr.isatty())
    form = {"auto": "console" if is_for_people else "json"}.get(values["CDB_LOG_FORMAT"], values["CDB_LOG_FORMAT"])
    # Libraries log only warnings and errors.
    least = max(logging.WARNING, logging.getLevelNamesMapping()[level])
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {"()": "cdb_rest.observe.log_format.JsonFormatter"},
            "console": {"()": "cdb_rest.observe.log_format.TextFormatter"},
        },
        "handlers": {"lines": {"formatter": form, **(_file(path) if path else {"class": "logging.StreamHandler"})}},
        "root": {"handlers": ["lines"], "level": least},
        "loggers": {
            "cdb": {"level": level},
            "cdb_rest": {"level": level},
            # The servers' own handlers are replaced when they load the application.
            "gunicorn.error": {"handlers": [], "propagate": True},
            "_granian": {"handlers": [], "propagate": True},
            "django": {"handlers": [], "level": least},
            # Only responses with status 500 are logged, not errors of clients.
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
        },
    }


def _file(path: str) -> dict[str, Any]:
    """A handler that opens the file again after logrotate has renamed it. Raises `ConfigurationError`."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).open("a").close()
    except OSError as error:
        raise env.ConfigurationError(f"CDB_LOG_FILE: can't write {path}: {error.strerror}") from error
    return {"class": "cdb_rest.observe.log_format.RotatedFileHandler", "filename": path, "delay": True}
