"""manage.py compiled"""

import contextlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.timesince import timesince

from cdb_rest.compiled import directory, usage
from cdb_rest.compiled.manifest import Manifest, UnusableError, read_manifest
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.output import table

HEADER = ["tag", "revision", "made of", "lists", "IOVs", "MiB", "age", "took", "lookups", "last used"]


class Command(BaseCommand):
    help = "List the compiled tags of this host with their sizes and use, verify their files, or delete them."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--verify",
            action="store_true",
            help="compare all files with their checksums, delete damaged compiled tags, and let the service use the others",
        )
        what.add_argument(
            "--drop",
            metavar="NAME",
            nargs="?",
            const="",
            help="delete the compiled tags of this global tag, or all of them without NAME; lookups continue in the database",
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
        for path in directory.paths():
            try:
                manifest = directory.verify(path)
                self.stdout.write(f"{manifest.tag} at revision {manifest.revision} is intact.")
            except UnusableError as error:
                self.stderr.write(f"{path.name}: {error}.")
                with contextlib.suppress(FileNotFoundError):
                    directory.remove(path)
                self.stdout.write(f"{path.name} was damaged; it is deleted.")

    def _drop(self, tag: str) -> None:
        chosen = [path for path in directory.paths() if not tag or ((one := _manifest(path)) and one.tag == tag)]
        if tag and not chosen:
            raise CommandError(f"there is no compiled tag {tag}")
        for path in chosen:
            with contextlib.suppress(FileNotFoundError):
                directory.remove(path)
        self.stdout.write(f"{len(chosen)} compiled tags deleted.")

    def _list(self) -> None:
        rows, use, total = [], usage.read().use, 0
        for path in directory.paths():
            manifest = _manifest(path)
            if manifest is None:
                rows.append([path.name, "", "damaged", *[""] * (len(HEADER) - 3)])
                continue
            used = use.get(path.name, usage.Use())
            total += manifest.size
            rows.append(
                [
                    manifest.tag,
                    str(manifest.revision),
                    _kind(path, manifest),
                    f"{len(manifest.lists):,}",
                    f"{manifest.rows:,}",
                    f"{manifest.size / 2**20:,.1f}",
                    _ago(manifest.compiled.timestamp()),
                    f"{manifest.seconds:.1f} s",
                    f"{used.lookups:,}",
                    _ago(used.last) if used.last else "never",
                ]
            )
        if rows:
            self.stdout.write(table(HEADER, rows))
        self.stdout.write(f"{len(rows)} compiled tags, {total / 2**20:,.1f} MiB, in {directory.root()}.")


def _manifest(path: Path) -> Manifest | None:
    try:
        return read_manifest(path)
    except (UnusableError, OSError):
        return None


def _kind(path: Path, manifest: Manifest) -> str:
    kind = "past" if manifest.is_past else f"present ({manifest.status})"
    return kind if directory.is_sealed(path) else f"{kind}, not verified"


def _ago(time: float) -> str:
    """How long ago a time in seconds was, in one unit."""
    return timesince(datetime.fromtimestamp(time, UTC), depth=1).replace("\xa0", " ")
