"""manage.py compiled"""

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.timesince import timesince

from cdb_rest.compiled.pack import OpenPacks, paths, readable_packs, root
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.output import table

HEADER = ["compiled for", "revision", "lists", "IOVs", "MiB", "age", "last used"]


class Command(ServiceCommand):
    help = (
        "List the files of compiled payload lists of this host with their sizes and use, verify them, or delete them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--verify", action="store_true", help="compare all files with their checksums, and delete damaged ones"
        )
        what.add_argument(
            "--drop",
            metavar="NAME",
            nargs="?",
            const="",
            help="delete the files that were compiled for this global tag, or all of them without NAME; lookups continue in "
            "the database",
        )

    def handle(self, *, verify: bool, drop: str | None, **options: Any) -> None:
        try:
            with interruptible():
                if verify:
                    self._verify()
                elif drop is not None:
                    self._drop(drop)
                else:
                    self._list()
        except OSError as error:
            raise CommandError(str(error)) from error

    def _verify(self) -> None:
        before, intact = paths(), OpenPacks()
        intact.refresh()
        for path in before:
            self.stdout.write(f"{path.name} {'is intact' if path.name in intact else 'was damaged; it is deleted'}.")

    def _drop(self, tag: str) -> None:
        chosen = [pack.path for pack in readable_packs() if pack.header["tag"] == tag] if tag else paths()
        if tag and not chosen:
            raise CommandError(f"there is no file of lists that were compiled for {tag}")
        for path in chosen:
            path.unlink(missing_ok=True)
        self.stdout.write(f"{len(chosen)} files of compiled lists deleted.")

    def _list(self) -> None:
        packs = readable_packs()
        rows = [
            [
                pack.header["tag"],
                str(pack.header["revision"]),
                f"{len(pack.positions):,}",
                f"{pack.rows:,}",
                f"{pack.size / 2**20:,.1f}",
                _ago(pack.header["compiled"]),
                _ago(pack.last_use()),
            ]
            for pack in sorted(packs, key=lambda pack: float(pack.header["compiled"]))
        ]
        if rows:
            self.stdout.write(table(HEADER, rows))
        size = sum(pack.size for pack in packs) / 2**20
        self.stdout.write(f"{len(rows)} files of compiled lists, {size:,.1f} MiB, in {root()}.")


def _ago(time: float) -> str:
    """How long ago a time in seconds was, in one unit."""
    return timesince(datetime.fromtimestamp(time, UTC), depth=1).replace("\xa0", " ")
