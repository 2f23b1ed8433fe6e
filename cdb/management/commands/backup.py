"""manage.py backup"""

import signal
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb import database
from cdb.management import dumps


class Command(BaseCommand):
    help = (
        "Write the whole database to a file with pg_dump while the service runs, and read the file back. It has the state at one "
        "moment, and manage.py restore reads it. For a state at any time, use pgBackRest."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path, help="a new file, on another disk or machine")

    def handle(self, *, file: Path, **options: Any) -> None:
        begin = time.monotonic()
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if file.exists():
            raise CommandError(f"{file} exists; choose a new file")
        dumps.dump(database.parts(), file)
        self.stdout.write(
            f"Backup {file} made and read back: {file.stat().st_size / 2**20:,.1f} MiB ({time.monotonic() - begin:.1f} s)."
        )
