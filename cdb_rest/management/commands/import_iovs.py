"""manage.py import_iovs"""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm
from tqdm.utils import CallbackIOWrapper

from cdb_rest.management.access import by_account
from cdb_rest.management.interruption import interruptible
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH, NAME_RULE, fits_into_path
from cdb_rest.writes.imports import ImportResult, import_payload_iovs


class Command(BaseCommand):
    help = (
        "Insert the rows of a CSV file, as GET global-tags/<name>/export writes it, into a global tag, by the rules of bulk "
        "requests: all rows or none. If the tag does not exist, it is created, unlocked; so are payload types and payload "
        "lists. Other writes to the tag wait meanwhile."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="path of the file; - reads standard input")
        parser.add_argument("--global-tag", metavar="NAME", required=True, help="name of the tag to insert into")
        parser.add_argument("--comment", default="", help="reason for the change log (default: none)")
        parser.add_argument("--dry-run", action="store_true", help="insert the rows, report, and roll back")

    def handle(self, *, file: str, global_tag: str, comment: str, dry_run: bool, **options: Any) -> None:
        if not global_tag or len(global_tag) > NAME_LENGTH or not fits_into_path(global_tag):
            raise CommandError(
                f"--global-tag must have 1 to {NAME_LENGTH} characters. {NAME_RULE} (got {global_tag!r})"
            )
        if len(comment) > COMMENT_LENGTH:
            raise CommandError(f"--comment must have at most {COMMENT_LENGTH:,} characters (got {len(comment):,})")
        begin = time.monotonic()
        origin = Origin(by_account("import_iovs"), comment)
        try:
            with _opened(file) as source, interruptible():
                done = self._import(source, global_tag, dry_run=dry_run, origin=origin)
        except OSError as error:
            raise CommandError(f"can't read {file}: {error.strerror}") from error
        except CdbError as error:
            raise CommandError(f"{error} Nothing was stored.") from error
        tag = f"{'new ' if done.created else ''}global tag {global_tag}{', unlocked' if done.created else ''}"
        self.stdout.write(
            f"{'Would import' if dry_run else 'Imported'} {done.payload_iovs:,} IOVs into {tag}; new payload types: "
            f"{done.payload_types:,}, new payload lists: {done.payload_lists:,} ({time.monotonic() - begin:.1f} s)."
        )

    def _import(self, source: BinaryIO, tag: str, **values: Any) -> ImportResult:
        size = source.seek(0, 2)
        with (
            tqdm(total=size, unit="B", unit_scale=True, desc="reading", disable=None, leave=False) as read,
            tqdm(unit="IOV", unit_scale=True, desc=tag, disable=None, leave=False) as bar,
        ):
            # A retry begins again, so both bars may go back.
            def progress(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            # The wrapper forwards all other methods of the file.
            observed = cast(BinaryIO, CallbackIOWrapper(lambda _: read.update(source.tell() - read.n), source, "read"))
            return import_payload_iovs(file=observed, global_tag=tag, progress=progress, **values)


def _opened(file: str) -> BinaryIO:
    """Open the file for reading. A pipe is copied to a temporary file, because a retry reads it again."""
    source = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115 -- the caller closes it
    if file != "-" and source.seekable():
        return source
    copy = tempfile.TemporaryFile()  # noqa: SIM115 -- likewise
    shutil.copyfileobj(source, copy)
    return copy
