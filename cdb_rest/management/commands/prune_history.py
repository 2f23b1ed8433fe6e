"""manage.py prune_history"""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from tqdm import tqdm

from cdb_rest.maintenance.pruning import Limit, Progress, Pruned, prune_history
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.quantities import AT_LEAST_ONE, Time
from cdb_rest.rules.access import check_pattern


def _shown_by(bar: "tqdm[Any]") -> Progress:
    """A function that shows the progress of one step after the other in the same bar."""
    shown = ""

    def show(step: str, done: int, total: int) -> None:
        nonlocal shown
        if step != shown:
            shown = step
            bar.set_description(step)
            bar.reset(total)
        bar.update(done - bar.n)

    return show


class Command(ServiceCommand):
    help = (
        "Drop the history of old revisions, and delete the rows that only they needed. Requests for these revisions then get "
        "410. The current revision of an existing tag, the revisions since a tag was frozen, and the change log stay. Other "
        "writes do not wait. After an interruption, run the command again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--before",
            action=Time,
            metavar="DATE",
            help="drop the history before DATE; the state at DATE stays; a date or time such as 2026-11-24 or "
            "2026-11-24T12:00:00Z, in UTC without a time zone",
        )
        which.add_argument(
            "--keep",
            metavar="REVISIONS",
            help="drop all but this number of newest revisions of each global tag",
            **AT_LEAST_ONE,
        )
        parser.add_argument(
            "--tag",
            metavar="PATTERN",
            help="only revisions of global tags, existing or deleted, whose whole name matches this regular expression of RE2 "
            "(default: all)",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="only count: delete in one transaction, and roll it back",
        )

    def handle(
        self, *, before: datetime | None, keep: int | None, tag: str | None, dry_run: bool, **options: Any
    ) -> None:
        if tag is not None:
            check_pattern("--tag", tag)
        with interruptible(), tqdm(disable=None, leave=False) as bar:
            limit = Limit(before=before, keep=keep, pattern=tag)
            pruned = prune_history(limit=limit, dry_run=dry_run, progress=_shown_by(bar))
        self.stdout.write(f"{self._summary(pruned, dry_run)} ({self.took()}).")

    @staticmethod
    def _summary(pruned: Pruned, dry_run: bool) -> str:
        verbs = ("Would prune", "would delete") if dry_run else ("Pruned", "deleted")
        return (
            f"{verbs[0]} {pruned.revisions:,} revisions of {pruned.tags:,} global tags; {verbs[1]} {pruned.areas:,} rows of "
            f"the history of IOVs, {pruned.versions:,} versions of payload lists, {pruned.memberships:,} memberships of "
            f"payload lists and {pruned.deleted_tags:,} deleted tags"
        )
