"""manage.py check_coverage"""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from cdb_rest.analysis.coverage import Selection, TypeCoverage, coverage
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.management.command import ServiceCommand
from cdb_rest.management.output import table
from cdb_rest.management.quantities import AT_LEAST_ONE
from cdb_rest.parsing.parameters import parse_moment_text
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode

# The number of gaps of a payload type that are printed.
GAPS_PRINTED = 10


class Command(ServiceCommand):
    help = (
        "Check that a global tag has a valid IOV of each payload type at all moments of a window. Prints the gaps. Exits with 1 "
        "if there is a gap or if a required payload type is missing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tag", help="the name of the global tag")
        parser.add_argument(
            "--since",
            default="0,0",
            metavar="MAJOR,MINOR",
            help="the first moment of the window (default: 0,0, so that the time before the first IOV counts as a gap)",
        )
        parser.add_argument(
            "--until",
            metavar="MAJOR,MINOR",
            help="the end of the window: exclusive in IOV mode continuous, inclusive in discrete (default: none)",
        )
        parser.add_argument(
            "--require",
            metavar="FILE",
            help="a file with the names of payload types that the tag must have, one per line; - for standard input",
        )
        parser.add_argument("--rev", metavar="N", help="check TAG as it was at this revision", **AT_LEAST_ONE)
        parser.add_argument(
            "--base",
            action="append",
            metavar="TAG",
            help="a global tag whose IOVs count where the tags before it have no valid one, as in a lookup in several tags; "
            "may be repeated",
        )

    def handle(
        self,
        *,
        tag: str,
        since: str,
        until: str | None,
        require: str | None,
        rev: int | None,
        base: list[str] | None,
        **options: Any,
    ) -> None:
        required = _names(require) if require else []
        rows: list[TypeCoverage] = []
        start = parse_moment_text("--since", since)
        end = END_OF_TIME if until is None else parse_moment_text("--until", until)
        window = Interval.from_wire(start, end, Mode(settings.CDB_IOV_MODE))
        if window.is_empty:
            raise CommandError(f"--until must be after --since (got --since {start} and --until {end})")
        past = None if rev is None else AsOf(revision=rev)
        selection = Selection([(tag, past), *((item, None) for item in base or ())], (), window, required)
        with snapshot():
            contents = selection.read()
            with tqdm(total=len(contents.lists), unit=" payload types", disable=None, leave=False) as bar:
                for batch in coverage(contents, selection):
                    rows += batch
                    bar.update(len(batch))
        took = self.took()
        gaps = [row for row in rows if row.gaps]
        if not gaps:
            self.stdout.write(f"No gaps in {len(rows):,} payload types of {tag} ({took}).")
            return
        self.stdout.write(table(("payload type", "covered", "gap from", "up to"), _lines(gaps)))
        missing = sum(not item.has_list for item in gaps)
        raise CommandError(
            f"{len(gaps):,} of {len(rows):,} payload types have gaps, {missing:,} of them without a payload list ({took})"
        )


def _lines(gaps: list[TypeCoverage]) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = []
    mode = Mode(settings.CDB_IOV_MODE)
    for of_type in gaps:
        # Not 100 %, because there is a gap.
        share = f"{min(of_type.covered, 0.999999):.4%}" if of_type.has_list else "no payload list"
        for gap in of_type.gaps[:GAPS_PRINTED]:
            since, until = gap.on_wire(mode)
            lines.append((of_type.payload_type, share, str(since), "open" if until == END_OF_TIME else str(until)))
        if len(of_type.gaps) > GAPS_PRINTED:
            lines.append((of_type.payload_type, share, f"and {len(of_type.gaps) - GAPS_PRINTED:,} more", ""))
    return lines


def _names(path: str) -> list[str]:
    try:
        text = Path("/dev/stdin" if path == "-" else path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--require: cannot read {path}: {error}") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
