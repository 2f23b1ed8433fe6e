"""manage.py reload"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb.env import ConfigurationError
from cdb.serving import reloads
from cdb_rest.management.quantities import Duration


class Command(BaseCommand):
    help = (
        "Reload the running `make serve` of this CDB_DATA_DIR with new code and new settings, without losing a request: it "
        "applies migrations and starts new processes, and the old ones finish their requests when the new ones respond. The "
        "command waits until then. If the new processes do not respond, the old ones continue and the command exits with 1."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--timeout",
            action=Duration,
            unit="s",
            above=0,
            default=600,
            metavar="TIME",
            help="maximum time to wait (default: 10min)",
        )

    def handle(self, *, timeout: float, **options: Any) -> None:
        begin = time.monotonic()
        self.stdout.write("Reloading.")
        self.stdout.flush()
        try:
            reloads.reload(timeout)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Reloaded: the new processes respond ({time.monotonic() - begin:.1f} s).")
