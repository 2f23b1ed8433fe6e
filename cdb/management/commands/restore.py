"""manage.py restore"""

import contextlib
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from psycopg2.extensions import quote_ident

from cdb import database
from cdb.management import dumps
from cdb_rest import named_sql
from cdb_rest.management.output import report_restoration
from cdb_rest.models import GlobalTag, PayloadType
from cdb_rest.rules.access import Origin
from cdb_rest.rules.names import COMMENT_LENGTH
from cdb_rest.writes.restorations import find_frozen_names, record_restoration

DATABASE_USERS = named_sql.load("database_users")
CLOSING_SECONDS = 3
# The database to which commands for whole databases connect, as PostgreSQL's own tools do.
MAINTENANCE_DATABASE = "postgres"


class Command(BaseCommand):
    help = (
        "Restore a file of manage.py backup. The service must be stopped. The file is restored into a new database, which takes "
        "the place of the present one when it has been migrated and has answered; until then the present one stays. The "
        "restoration is recorded, so that no revision of a global tag is used twice."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="file that manage.py backup has written")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="also if the database has global tags or payload types: they will be lost",
        )

    def handle(self, *, file: Path, replace: bool, **options: Any) -> None:
        begin = time.monotonic()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        dumps.check_readable(file)
        name = connection.settings_dict["NAME"]
        if _has_content() and not replace:
            raise CommandError(f"the database {name} has content; with --replace, the restored one takes its place")
        connection.close()
        stamp = f"{datetime.now(UTC):%Y%m%d%H%M%S}"
        new, old = f"{name}_restored_{stamp}", f"{name}_replaced_{stamp}"
        with _maintenance() as cursor:
            _check_unused(cursor, name)
            cursor.execute(f"CREATE DATABASE {quote_ident(new, cursor)}")
            try:
                dumps.load(file, _use_server_of(cursor) | {"dbname": new})
                lines = _complete(name, new, f"from {file}")
                _rename(cursor, {name: old, new: name})
            except BaseException:
                connection.close()
                cursor.execute(f"DROP DATABASE IF EXISTS {quote_ident(new, cursor)} WITH (FORCE)")
                raise
            cursor.execute(f"DROP DATABASE {quote_ident(old, cursor)}")
        for line in lines:
            self.stdout.write(line)
        self.stdout.write(f"Restored {file} ({time.monotonic() - begin:.1f} s).")


def _has_content() -> bool:
    tables = connection.introspection.table_names()
    return any(model._meta.db_table in tables and model.objects.exists() for model in (GlobalTag, PayloadType))


@contextlib.contextmanager
def _maintenance() -> Iterator[Any]:
    """A cursor for commands that concern whole databases. Raises `CommandError` with PostgreSQL's error."""
    try:
        named: dict[str, Any] = database.parts() | {"dbname": MAINTENANCE_DATABASE}
        with contextlib.closing(psycopg2.connect(**named)) as maintenance:
            maintenance.autocommit = True
            yield maintenance.cursor()
    except psycopg2.Error as error:
        raise CommandError(" ".join(str(error).split())) from error


def _check_unused(cursor: Any, name: str) -> None:
    """Raise `CommandError` if other programs use a database. A connection that was just closed may be listed for a moment."""
    deadline = time.monotonic() + CLOSING_SECONDS
    while True:
        cursor.execute(DATABASE_USERS, {"name": name})
        [(programs,)] = cursor.fetchall()
        if programs is None:
            return
        if time.monotonic() > deadline:
            raise CommandError(f"the database {name} is in use ({programs}): stop the service first")
        time.sleep(0.1)


def _complete(name: str, new: str, comment: str) -> list[str]:
    """Migrate the new database and record the restoration in it. Returns the lines to print; they show that it answers."""
    frozen = find_frozen_names()
    _use(new)
    try:
        call_command("migrate", verbosity=0)
        origin = Origin("manage.py restore", comment[:COMMENT_LENGTH])
        return report_restoration(record_restoration(frozen_before=frozen, origin=origin), frozen)
    finally:
        _use(name)


def _use_server_of(cursor: Any) -> dict[str, str]:
    """Let Django's connection use the server of a cursor. Returns its connection parameters.

    Of several hosts in DATABASE_URL, a standby may not have the new database yet.
    """
    info = cursor.connection.info
    connection.settings_dict["OPTIONS"].pop("hostaddr", None)
    connection.settings_dict |= {"HOST": info.host, "PORT": str(info.port)}
    named = database.parts() | {"host": info.host, "port": str(info.port)}
    named.pop("hostaddr", None)
    return named


def _use(name: str) -> None:
    """Let Django's connection use another database of the same server."""
    connection.close()
    connection.settings_dict["NAME"] = name


def _rename(cursor: Any, names: dict[str, str]) -> None:
    """Rename databases, all or none: PostgreSQL executes statements that are sent together in one transaction."""
    quoted = [(quote_ident(old, cursor), quote_ident(new, cursor)) for old, new in names.items()]
    cursor.execute("; ".join(f"ALTER DATABASE {old} RENAME TO {new}" for old, new in quoted))
