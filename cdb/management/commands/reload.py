"""manage.py reload"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb.env import ConfigurationError
from cdb.serving import reloads


class Command(BaseCommand):
    help = (
        "Have the running `make serve` of this CDB_DATA_DIR put new code and new settings in place without losing a request: "
        "migrate, start new processes, and when they respond, let the old ones finish. Waits until that is done; exits with 1, "
        "and the old processes go on, if the new ones do not respond."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="how long to wait (600)")

    def handle(self, *, timeout: float, **options: Any) -> None:
        begin = time.monotonic()
        self.stdout.write("Reloading.")
        self.stdout.flush()
        try:
            reloads.reload(timeout)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Reloaded: the new processes respond ({time.monotonic() - begin:.1f} s).")
