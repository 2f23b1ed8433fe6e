"""manage.py check_intervals"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb_rest.maintenance.repair import find_faults, repair_faults
from cdb_rest.management.access import by_account
from cdb_rest.management.output import report_faults, show_faults
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import CdbError


class Command(BaseCommand):
    help = (
        "Find violations of the rules of payload lists: empty rows, rows of one list with equal starts, closed intervals that "
        "overlap the next, revisions that lag behind the change log, incorrect counts. Exits with 1 if a fault remains."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--global-tag", metavar="NAME", help="check this global tag only (default: all)")
        parser.add_argument(
            "--repair",
            action="store_true",
            help="repair faults without changing which payload is valid at any moment: trim overlaps, detach empty "
            "rows, set revisions and counts; the lists of frozen tags are not changed, and their faults remain; "
            "writes wait meanwhile",
        )

    def handle(self, *, global_tag: str | None, repair: bool, **options: Any) -> None:
        begin = time.monotonic()
        try:
            found = find_faults(global_tag=global_tag)
            show_faults(self, found)
            left = found
            if repair and found:
                left = repair_faults(global_tag=global_tag, origin=Origin(by_account("check_intervals")))
        except CdbError as error:
            raise CommandError(str(error)) from error
        took = f"{time.monotonic() - begin:.1f} s"
        report_faults(self, found, left, is_repaired=repair, took=took)
