"""manage.py check_intervals"""

from typing import Any

from django.core.management.base import CommandParser

from cdb_rest.maintenance.repair import find_faults, repair_faults
from cdb_rest.management.access import by_account
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import report_faults, show_faults
from cdb_rest.rules.access import Origin


class Command(ServiceCommand):
    help = (
        "Find violations of the rules of payload lists: empty rows, rows of one list with equal starts, closed intervals that "
        "overlap the next, revisions that lag behind the change log, incorrect counts. Exits with 1 if a fault remains."
    )

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
        found = find_faults(global_tag=global_tag)
        show_faults(self, found)
        left = found
        if repair and found:
            left = repair_faults(global_tag=global_tag, origin=Origin(by_account("check_intervals")))
        took = self.took()
        report_faults(self, found, left, is_repaired=repair, took=took)
