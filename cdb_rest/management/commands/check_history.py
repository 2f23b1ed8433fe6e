"""manage.py check_history

SQL by other programs changes the present without storing the past: rows that it inserts appear in earlier versions of their
list, rows that it deletes or changes are missing there or changed there too, and lists that it attaches appear in no earlier
revision and in no later one until the next change of the tag's lists is recorded.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from cdb_rest.connections.snapshot import snapshot
from cdb_rest.maintenance.history_check import Progress, find_history_faults
from cdb_rest.maintenance.history_repair import Repaired, repair_history
from cdb_rest.management.access import by_account
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.output import report_faults, show_faults
from cdb_rest.rules.access import Origin


class Command(ServiceCommand):
    help = (
        "Find faults of the history: rows and areas of the past that overlap, versions of payload lists and numbers of IOVs that "
        "differ from what was recorded, lists that share other rows than recorded, memberships of payload lists and newest "
        "entries of the change log that differ from the present. Writes by the service cause no faults, but SQL by other "
        "programs does. Exits with 1 if a fault remains."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--tag",
            metavar="NAME",
            help="check this global tag only, which may be deleted, with its lists and those whose rows they share "
            "(default: all)",
        )
        parser.add_argument(
            "--repair",
            action="store_true",
            help="repair faults without changing the present: correct memberships and the change log; begin the past of lists "
            "with faulty rows anew, and drop the history of revisions that need it, so that they get 410; tags get a new "
            "revision, frozen ones do not, and their faults remain; writes wait meanwhile",
        )

    def handle(self, *, tag: str | None, repair: bool, **options: Any) -> None:
        repaired = Repaired()
        with interruptible():
            with snapshot(), _progress() as progress:
                found = find_history_faults(global_tag=tag, progress=progress)
            show_faults(self, found)
            if repair and found:
                repaired = repair_history(global_tag=tag, origin=Origin(by_account("check_history")))
        took = self.took()
        for name, revisions in sorted(repaired.dropped.items()):
            self.stdout.write(f"Global tag {name}: the history of {len(revisions):,} revisions was dropped.")
        report_faults(self, found, repaired.left, is_repaired=repair, took=took)


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    with tqdm(unit="list", desc="checking", disable=None, leave=False) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield show
