"""manage.py restore"""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error, connections

from cdb import database
from cdb.embedded.backup_directory import BackupDirectory
from cdb.embedded.restoring import restore
from cdb.env import ConfigurationError
from cdb_rest.domain.names import COMMENT_LENGTH
from cdb_rest.domain.origin import Origin
from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.management.restorations import report
from cdb_rest.services.restorations import find_frozen_names, record_restoration


class Command(BaseCommand):
    help = (
        "Restore the embedded PostgreSQL from a directory of `manage.py backup`, to the last archived state or to the state at "
        "a given time. The service must be stopped. The present data are kept in a directory replaced-TIME beside the restored "
        "ones. The restoration is recorded, so that no revision of a global tag is used twice."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("directory", metavar="DIRECTORY", help="directory that was given to backup")
        parser.add_argument(
            "--until",
            metavar="TIME",
            help="restore the state at this time, such as 2026-11-23T14:05:00Z (UTC unless a time zone is given)",
        )
        parser.add_argument(
            "--timeline",
            **AT_LEAST_ONE,
            metavar="N",
            help="follow this timeline of PostgreSQL; each restoration begins a new one (default: the latest)",
        )

    def handle(self, *, directory: str, until: str | None, timeline: int | None, **options: Any) -> None:
        begin = time.monotonic()
        moment = _time(until) if until else None
        server = database.embedded()
        if server is None:
            raise CommandError(
                "DATABASE_URL is set: restore that server with its own tools, and then run manage.py record_restoration"
            )
        lines: list[str] = []

        def finish(frozen_before: set[str] | None) -> None:
            try:
                call_command("migrate", verbosity=0)
                database.check_mode()
                comment = f"from {directory}" + (f", until {until}" if until else "")
                origin = Origin("manage.py restore", comment[:COMMENT_LENGTH])
                lines.extend(report(record_restoration(frozen_before=frozen_before, origin=origin), frozen_before))
            finally:
                connections.close_all()

        try:
            restored = restore(
                server,
                BackupDirectory(Path(directory)),
                until=moment,
                timeline=timeline,
                read=_read_frozen_names,
                finish=finish,
            )
        except (ConfigurationError, OSError) as error:
            raise CommandError(str(error)) from error
        for line in lines:
            self.stdout.write(line)
        if restored.replaced:
            self.stdout.write(
                f"The data from before are in {restored.replaced}; remove them when you do not need them."
            )
        self.stdout.write(f"Restored from {restored.backup.path} ({time.monotonic() - begin:.1f} s).")


def _read_frozen_names() -> set[str]:
    try:
        return find_frozen_names()
    except Error as error:
        raise ConfigurationError(f"the present data can't be read: {error}") from error
    finally:
        connections.close_all()


def _time(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--until must be a time such as 2026-11-23T14:05:00Z (got {text})") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
