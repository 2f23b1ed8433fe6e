"""The command line of manage.py: it makes the database available, runs a command, and reports errors in one line."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import psycopg2
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseError
from psycopg2.errors import UndefinedTable

from cdb import database, security
from cdb.env import ConfigurationError
from cdb_rest.rules.errors import CdbError

# Commands that use no database. Starting the embedded server for them would only take time.
WITHOUT_DATABASE = {"help", "version", "check", "capacity", "spectacular", "diffsettings"}
# Commands that run the embedded server until they are stopped.
SERVICES = ("run", "serve")
HELP_FLAGS = {"-h", "--help", "--version"}


def main(arguments: list[str]) -> int:
    """Run a command of manage.py and return the exit code. Prints errors of the configuration, the rules and the database
    in one line.

    `arguments` begin with the name of the program, as `sys.argv` does. Raises `SystemExit` if the command reports an
    error itself (`CommandError`). With `--traceback`, a `CommandError` and errors of the database are raised. Call it in
    the main thread.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cdb.settings")
    if any(argument.encode(errors="ignore").decode() != argument for argument in arguments):
        sys.stderr.write("cdb: arguments must be UTF-8\n")
        return 1
    try:
        with _database(arguments[1:]):
            from django.core.management import execute_from_command_line

            execute_from_command_line(arguments)
    except (ConfigurationError, ImproperlyConfigured, CdbError) as error:
        sys.stderr.write(f"cdb: {' '.join(str(error).split())}\n")
        return 1
    except (DatabaseError, psycopg2.Error) as error:
        if "--traceback" in arguments:
            raise
        reason = " ".join(str(error).split())
        if isinstance(error.__cause__ or error, UndefinedTable):
            reason = "its tables do not exist; check CDB_DATA_DIR and DATABASE_URL, or create the tables with manage.py migrate"
        sys.stderr.write(f"cdb: database error: {reason} (--traceback shows the traceback)\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


@contextlib.contextmanager
def _database(arguments: list[str]) -> Iterator[None]:
    # After `--` there are only names, such as that of a tag, which may look like a flag.
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if not arguments or arguments[0] in WITHOUT_DATABASE or HELP_FLAGS.intersection(options):
        yield
        return
    command = arguments[0]
    if command in SERVICES:
        security.check_contradictions(command)
    with database.available(f"make {command}" if command in SERVICES else ""):
        yield
