"""manage.py check_counts"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cdb_rest.management.tables import table
from cdb_rest.services.counts import WrongCount, find_wrong_counts, repair_counts


class Command(BaseCommand):
    help = (
        "Compare the counts that the database keeps (payload lists and IOVs of each global tag, IOVs of each payload list) "
        "with the rows. Exits with 1 if a wrong count remains."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="correct wrong counts; writes wait meanwhile")

    def handle(self, *, repair: bool, **options: Any) -> None:
        begin = time.monotonic()
        wrong = repair_counts() if repair else find_wrong_counts()
        self._table(wrong)
        took = f"{time.monotonic() - begin:.1f} s"
        if not wrong:
            self.stdout.write(f"All counts are right ({took}).")
        elif repair:
            self.stdout.write(f"{len(wrong)} wrong counts repaired ({took}).")
        else:
            raise CommandError(f"{len(wrong)} wrong counts ({took}); --repair corrects them")

    def _table(self, wrong: list[WrongCount]) -> None:
        if wrong:
            rows = [(one.kind, one.name, one.count, f"{one.kept:,}", f"{one.actual:,}") for one in wrong]
            self.stdout.write(table(("object", "name", "count", "kept", "actual"), rows))
