"""manage.py check_counts"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb_rest.management.tables import table
from cdb_rest.services.counts import IncorrectCount, find_incorrect_counts, repair_counts


class Command(BaseCommand):
    help = (
        "Compare the counts that the database stores (payload lists and IOVs of each global tag, IOVs of each payload list) "
        "with the rows. Exits with 1 if an incorrect count remains."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="correct the counts; writes wait meanwhile")

    def handle(self, *, repair: bool, **options: Any) -> None:
        begin = time.monotonic()
        found = repair_counts() if repair else find_incorrect_counts()
        self._table(found)
        took = f"{time.monotonic() - begin:.1f} s"
        if not found:
            self.stdout.write(f"All counts are correct ({took}).")
        elif repair:
            self.stdout.write(f"Incorrect counts repaired: {len(found)} ({took}).")
        else:
            raise CommandError(f"incorrect counts: {len(found)} ({took}); --repair corrects them")

    def _table(self, found: list[IncorrectCount]) -> None:
        if found:
            rows = [(one.kind, one.name, one.count, f"{one.stored:,}", f"{one.actual:,}") for one in found]
            self.stdout.write(table(("object", "name", "count", "stored", "actual"), rows))
