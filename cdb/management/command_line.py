"""What happens around a command of manage.py: find the database, run the command, leave nothing behind."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

from django.db import Error as DatabaseError
from psycopg2.errors import UndefinedTable

from cdb import database, security
from cdb.env import ConfigurationError
from cdb.serving import postgresql

# Commands that never open a connection; starting a server for them would only cost time.
WITHOUT_DATABASE = {
    "help", "version", "check", "capacity", "reload", "spectacular", "startapp", "startproject", "diffsettings",
}  # fmt: skip
HELP_FLAGS = {"-h", "--help", "--version"}


def main(arguments: list[str]) -> int:
    """Run one command of manage.py; returns the process's exit code. Errors of configuration are one line each."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    if any(argument.encode(errors="ignore").decode() != argument for argument in arguments):
        sys.stderr.write("cdb: arguments must be UTF-8\n")
        return 1
    try:
        with _database(arguments[1:]):
            from django.core.management import execute_from_command_line

            execute_from_command_line(arguments)
    except ConfigurationError as error:
        sys.stderr.write(f"cdb: {error}\n")
        return 1
    except DatabaseError as error:
        if "--traceback" in arguments:
            raise
        reason = " ".join(str(error).split())
        if isinstance(error.__cause__, UndefinedTable):
            reason = "its tables do not exist; check CDB_DATA_DIR and DATABASE_URL, or create the tables with manage.py migrate"
        sys.stderr.write(f"cdb: the database refused: {reason} (--traceback shows where)\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


@contextlib.contextmanager
def _database(arguments: list[str]) -> Iterator[None]:
    if not arguments or arguments[0] in WITHOUT_DATABASE or HELP_FLAGS.intersection(arguments):
        yield
        return
    is_production = arguments[0] == "serve"
    if is_production:
        security.check_production()
    # The embedded server is sized for production where it is for that.
    with database.available(postgresql.options() if is_production else None):
        yield
