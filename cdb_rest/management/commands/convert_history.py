"""manage.py convert_history"""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from cdb_rest.domain.errors import CdbError
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.services.convert_history import Conversion, convert_history, count_logged, find_unconverted


class Command(BaseCommand):
    help = (
        "Convert the change log of versions of cdb that had no history of payload lists, so that its revisions can be asked for. "
        "Each global tag is converted in one transaction, at the end of which other writes to the tag wait. The command "
        "can be interrupted and run again. It prints for each tag the first revision that can be asked for, and why not an "
        "earlier one."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--tag", metavar="NAME", help="convert this global tag only (default: all)")
        parser.add_argument(
            "--batch",
            **AT_LEAST_ONE,
            metavar="N",
            default=100,
            help="number of changes that are read at a time (default: 100)",
        )

    def handle(self, *, tag: str | None, batch: int, **options: Any) -> None:
        begin = time.monotonic()
        try:
            with interruptible():
                done = self._convert(tag, batch)
        except CdbError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Converted {sum(one.changes for one in done):,} changes of {sum(one.changes > 0 for one in done):,} global tags "
            f"into {sum(one.areas for one in done):,} areas; changes left without history: {count_logged():,} "
            f"({time.monotonic() - begin:.1f} s)."
        )

    def _convert(self, tag: str | None, batch: int) -> list[Conversion]:
        found = find_unconverted(global_tag=tag)
        done = []
        with tqdm(total=sum(count for *_, count in found), unit="change", disable=None, leave=False) as bar:
            for tag_id, name, count in found:
                bar.set_description(name)
                before = bar.n
                one = convert_history(tag_id=tag_id, batch=batch, progress=bar.update)
                # A retry reports changes again, and after a contradiction some are not read.
                bar.update(before + count - bar.n)
                done.append(one)
                earlier = f"; not before it: {one.reason}" if one.reason else ""
                with bar.external_write_mode():
                    self.stdout.write(f"{name}: can be asked for from revision {one.first_revision} on{earlier}.")
        return done
