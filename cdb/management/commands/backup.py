"""manage.py backup"""

import time
from pathlib import Path
from typing import Any

import psycopg2
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb import database
from cdb.embedded.backup_directory import BackupDirectory
from cdb.embedded.backups import back_up
from cdb.env import ConfigurationError
from cdb_rest.management.quantities import AT_LEAST_ONE


class Command(BaseCommand):
    help = (
        "Back up the embedded PostgreSQL to a directory while it serves, and verify the backup. From the first backup on, the "
        "server also archives all changes to that directory, at the latest after a minute, so that `manage.py restore` can "
        "restore the state at any time since then. Back up a PostgreSQL server of your own (DATABASE_URL) with its own tools."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", metavar="DIRECTORY", help="directory for backups, on another disk")
        parser.add_argument(
            "--incremental", action="store_true", help="store only what has changed since the newest backup"
        )
        parser.add_argument(
            "--keep",
            **AT_LEAST_ONE,
            metavar="N",
            help="then keep only the N newest full backups, with the changes since then (default: keep all)",
        )

    def handle(self, *, directory: str, incremental: bool, keep: int | None, **options: Any) -> None:
        begin = time.monotonic()
        server = database.in_use()
        if server is None:
            raise CommandError("DATABASE_URL is set: back up that server with its own tools, such as pgBackRest")
        backups = BackupDirectory(Path(directory))
        try:
            made = back_up(server, backups, incremental=incremental)
            deleted = backups.prune(keep) if keep else 0
        except (ConfigurationError, OSError, psycopg2.Error) as error:
            raise CommandError(" ".join(str(error).split())) from error
        size = sum(path.stat().st_size for path in made.path.rglob("*") if path.is_file())
        if deleted:
            self.stdout.write(f"Deleted {deleted} older backups, and the changes from before the remaining ones.")
        self.stdout.write(
            f"Backup {made.path} made and verified: {size / 2**20:,.1f} MiB ({time.monotonic() - begin:.1f} s). "
            f"Changes are archived in {backups.wal}."
        )
