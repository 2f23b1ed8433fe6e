"""manage.py migrate: that of Django, with a check of the history, a lock timeout with retries, and one transaction for each."""

import contextlib
import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections, transaction
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor
from psycopg2.errors import LockNotAvailable

from cdb.management.migration_history import check_history, describe_newer
from cdb_rest import named_sql

LIMIT_LOCK_WAIT = named_sql.load("limit_lock_wait")

ATTEMPTS = 10
# Longer than the wait for a lock (CDB_MIGRATION_LOCK_TIMEOUT_SECONDS) is, so that lookups that queued
# behind it are served between two attempts.
PAUSE_SECONDS = 3


class Executor(MigrationExecutor):
    """A migration executor that applies a migration, if it is atomic, and records it in one transaction.

    Django may record a migration after its transaction. If the process were killed in between, the next start
    would try to create the same tables again.
    """

    def apply_migration(self, state: Any, migration: Migration, *options: Any, **named: Any) -> Any:
        """Apply a migration as Django does; returns the project state after it."""
        with transaction.atomic(self.connection.alias) if migration.atomic else contextlib.nullcontext():
            return super().apply_migration(state, migration, *options, **named)


migrate.MigrationExecutor = Executor  # type: ignore[attr-defined]  # that module imports the name


class Command(migrate.Command):
    help = (
        f"{migrate.Command.help} A migration that must lock a table waits for a short time, "
        f"because lookups queue behind it, and is tried {ATTEMPTS} times. "
        "A database that a newer version has migrated is not changed: this version can use it as it is. "
        "A database with other migrations that this version does not have is rejected and not changed."
    )

    def handle(self, *arguments: Any, **options: Any) -> None:
        """Migrate as Django does, with `ATTEMPTS` attempts if a table is locked.

        If a newer version has migrated the database, this method only prints a warning.

        Raises `CommandError` as Django does, and in three more cases. If `check_history` rejects the database, because it
        has migrations that this version does not know or tables of another application, or if certain migrations are
        requested of a database that a newer version has migrated, nothing was changed. If a table was locked at every
        attempt, completed migrations remain applied.
        """
        connection = connections[options["database"]]
        newer = check_history(connection)
        if newer and options["app_label"]:
            raise CommandError(f"{describe_newer(newer)}: use that version to migrate it. Nothing was changed.")
        if newer:
            self.stderr.write(f"Warning: {describe_newer(newer)}. This version uses it as it is.")
            return
        for attempt in range(1, ATTEMPTS + 1):
            with connection.cursor() as cursor:
                seconds = settings.CDB_MIGRATION_LOCK_TIMEOUT_SECONDS
                cursor.execute(LIMIT_LOCK_WAIT, {"milliseconds": str(1000 * seconds)})
            try:
                super().handle(*arguments, **options)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
            if attempt < ATTEMPTS:
                self.stderr.write(
                    f"A table is in use; retrying in {PAUSE_SECONDS} s (attempt {attempt} of {ATTEMPTS})."
                )
                time.sleep(PAUSE_SECONDS)
        raise CommandError(
            f"a table was locked at each of {ATTEMPTS} attempts; completed migrations remain applied. End the old "
            "transactions, which pg_stat_activity lists, and migrate again"
        )
