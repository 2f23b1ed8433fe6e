"""manage.py import_iovs"""

import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from cdb_rest.management.access import by_account
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.interruption import interruptible
from cdb_rest.management.output import table
from cdb_rest.parsing.iov_files import CutFileError, Options, read_iov_rows
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import CdbError, ConfirmationRequiredError, GlobalTagNotFoundError, PayloadTypeNotFoundError
from cdb_rest.rules.iov_rows import IOVRow
from cdb_rest.rules.moment import Mode
from cdb_rest.rules.names import COMMENT_LENGTH
from cdb_rest.writes.effects import Effects, EffectWarning, TypeEffects
from cdb_rest.writes.imports import ImportOptions, import_payload_iovs
from cdb_rest.writes.transactions import roll_back

# The largest file. It takes hours to import.
MAX_FILE_BYTES = 2**34
# Lines of a file that a warning names.
LINES_SHOWN = 40
COUNTS = ("added", "unchanged", "shortened", "starts later", "split", "replaced", "removed", "gaps")
HEADER = ("payload type", *COUNTS, "from", "up to")


class Command(ServiceCommand):
    help = (
        "Insert the rows of a file into a global tag, all or none: CSV, a JSON array or JSON Lines, also as GET "
        "global-tags/NAME/export writes it. Its columns are payload_type, payload_url, and optionally checksum, size and "
        "revision; the start is in since (as major,minor) or in major_iov and minor_iov; the end is in until or in "
        "major_iov_end and minor_iov_end. An end that is empty, next or open is the next start in the file or in the payload "
        "list; 7,end is the end of major number 7. The order of the rows has no meaning. Other writes to the tag wait meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="path of the file; - reads standard input")
        parser.add_argument("--global-tag", metavar="NAME", required=True, help="name of the tag to insert into")
        parser.add_argument("--comment", default="", help="reason for the change log (default: none)")
        parser.add_argument("--dry-run", action="store_true", help="insert the rows, report, and roll back")
        parser.add_argument(
            "--confirm", action="store_true", help="import also if existing IOVs would be removed or gaps would be made"
        )
        parser.add_argument(
            "--create", action="store_true", help="create the tag, unlocked, and payload types, if they do not exist"
        )
        parser.add_argument(
            "--in-order",
            action="store_true",
            help="apply the rows one after the other by the interval rule, so that later rows replace parts of earlier ones",
        )
        parser.add_argument(
            "--open-hides-later",
            action="store_true",
            help="an end that the file calls open, or 9223372036854775807, hides all later IOVs that are not in the file",
        )
        parser.add_argument(
            "--mode",
            choices=[*Mode],
            help="whether ends are exclusive (continuous) or inclusive (discrete), in a file without the column mode "
            "(default: CDB_IOV_MODE)",
        )
        parser.add_argument("--ignore-columns", action="store_true", help="ignore columns with other names")
        parser.add_argument("--no-final-newline", action="store_true", help="the last line may lack its line break")

    def handle(self, *, file: str, global_tag: str, comment: str, dry_run: bool, **options: Any) -> None:
        if len(comment) > COMMENT_LENGTH:
            raise CommandError(f"--comment must have at most {COMMENT_LENGTH:,} characters (got {len(comment):,})")
        how = Options(
            mode=options["mode"] and Mode(options["mode"]),
            ignores_columns=options["ignore_columns"],
            may_be_cut=options["no_final_newline"],
        )
        try:
            with _opened(file) as source:
                done = self._import(
                    source,
                    global_tag,
                    how,
                    options=ImportOptions(options["create"], options["in_order"], options["open_hides_later"]),
                    confirmed=dry_run or options["confirm"],
                    dry_run=dry_run,
                    origin=Origin(by_account("import_iovs"), comment),
                )
        except OSError as error:
            raise CommandError(f"can't read {file}: {error.strerror or error}") from error
        except CutFileError as error:
            raise CommandError(f"{error} --no-final-newline accepts it. Nothing was stored.") from error
        except (GlobalTagNotFoundError, PayloadTypeNotFoundError) as error:
            raise CommandError(f"{_described(error)}\n--create creates it. Nothing was stored.") from error
        except ConfirmationRequiredError as error:
            raise CommandError(
                f"{_described(error)}\nWith --confirm, they are imported. Nothing was stored."
            ) from error
        except CdbError as error:
            raise CommandError(f"{_described(error)}\nNothing was stored.") from error
        self._report(done, global_tag, dry_run=dry_run, took=self.took())

    def _import(self, source: BinaryIO, tag: str, how: Options, *, dry_run: bool, **values: Any) -> Effects:
        size = source.seek(0, 2)
        with (
            interruptible() as check,
            tqdm(total=size, unit="B", unit_scale=True, desc="reading", disable=None, leave=False) as read,
            tqdm(unit="IOV", unit_scale=True, desc=tag, disable=None, leave=False) as bar,
        ):
            # A retry begins again, so both bars may go back.
            def progress(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)
                check()

            def rows() -> Iterator[IOVRow]:
                source.seek(0)
                for number, row in enumerate(read_iov_rows(source, how)):
                    if number % 1000 == 0:
                        read.update(source.tell() - read.n)
                        check()
                    yield row

            service = partial(import_payload_iovs, read=rows, global_tag=tag, progress=progress, **values)
            return (roll_back(service) if dry_run else service()).effects

    def _report(self, done: Effects, tag: str, *, dry_run: bool, took: str) -> None:
        for warning in done.warnings:
            self.stdout.write(self.style.WARNING(_shown_warning(warning)))
        if done.types:
            self.stdout.write(table(HEADER, [_shown(found) for found in done.types]))
        verbs = ("Would import", "would create") if dry_run else ("Imported", "created")
        created = [
            *([f"global tag {tag}, unlocked"] if done.creates_tag else []),
            *(f"payload type {name}" for name in done.new_types),
            *([f"{done.new_lists} payload lists"] if done.new_lists else []),
        ]
        added, unchanged = (sum(getattr(found, name) for found in done.types) for name in ("added", "unchanged"))
        self.stdout.write(
            f"{verbs[0]} {added:,} IOVs into global tag {tag}; unchanged: {unchanged:,}"
            f"{f'; {verbs[1]} ' if created else ''}{', '.join(created)} ({took})."
        )


def _described(error: CdbError) -> str:
    return "\n".join(f"Line {row['row'] + 1}: {row['detail']}" for row in error.rows) or str(error)


def _shown_warning(warning: EffectWarning) -> str:
    """A warning with the numbers of its first rows."""
    numbers = ", ".join(map(str, warning.rows[:LINES_SHOWN]))
    more = ", …" if len(warning.rows) > LINES_SHOWN else ""
    return f"Warning ({warning.kind}): {warning.payload_type}: {warning.text}{f' Lines: {numbers}{more}.' if numbers else ''}"


def _shown(found: TypeEffects) -> list[str]:
    numbers = (f"{getattr(found, name.replace(' ', '_')):,}" for name in COUNTS)
    if found.interval is None:
        return [found.payload_type, *numbers, "-", "-"]
    since, until = found.interval.on_wire(Mode(settings.CDB_IOV_MODE))
    last = "open" if found.interval.is_open else "{},{}".format(*until)
    return [found.payload_type, *numbers, "{},{}".format(*since), last]


def _opened(file: str) -> BinaryIO:
    """Open the file for reading. A pipe is copied to a temporary file, because a retry reads it again."""
    source = sys.stdin.buffer if file == "-" else Path(file).open("rb")  # noqa: SIM115 -- the caller closes it
    if file != "-" and source.seekable():
        return source
    copy = tempfile.TemporaryFile()  # noqa: SIM115 -- likewise
    while part := source.read(2**20):
        copy.write(part)
        if copy.tell() > MAX_FILE_BYTES:
            raise CommandError(f"the file has more than {MAX_FILE_BYTES:,} bytes")
    return copy
