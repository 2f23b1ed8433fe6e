"""What commands print: tables, the faults that they have found and repaired, and the report of a restoration."""

from collections.abc import Collection, Sequence

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cdb_rest.maintenance.history_check import HistoryFault
from cdb_rest.maintenance.repair import Fault
from cdb_rest.models import GlobalTag, PayloadIOV, Restoration

# Only the number of further rows is shown.
ROWS_SHOWN = 40


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a header and the first rows, and the number of further rows."""
    shown = [header, *rows[:ROWS_SHOWN]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    if len(rows) > ROWS_SHOWN:
        lines.append(f"and {len(rows) - ROWS_SHOWN:,} more")
    return "\n".join(lines)


Faults = Sequence[Fault | HistoryFault]


def show_faults(command: BaseCommand, faults: Faults) -> None:
    """Print a table of faults, if there are any."""
    rows = [(fault.kind, fault.global_tag or "-", fault.payload_list or "-", fault.description) for fault in faults]
    if rows:
        command.stdout.write(table(("fault", "global tag", "payload list", "description"), rows))


def report_faults(command: BaseCommand, found: Faults, left: Faults, *, is_repaired: bool, took: str) -> None:
    """Print what was found, and what a repair has left of it. Raises `CommandError` if faults remain."""
    if not found:
        command.stdout.write(f"No faults found ({took}).")
    elif not is_repaired:
        raise CommandError(f"faults: {len(found):,} ({took}); --repair repairs them")
    elif left:
        command.stdout.write("Not repaired, because the tag is frozen:")
        show_faults(command, left)
        raise CommandError(f"faults not repaired: {len(left):,} of {len(found):,} ({took})")
    else:
        command.stdout.write(f"Faults repaired: {len(found):,} ({took}).")


# Only the number of further names is shown.
NAMES_SHOWN = 20


def report_restoration(restoration: Restoration, frozen_before: Collection[str] | None) -> list[str]:
    """The lines of the report: the content of the database and, if needed, a warning about HTTP caches.

    `restoration` is the result of `record_restoration`, and `frozen_before` its argument: None if the names of the tags
    that were frozen before are not known.
    """
    lines = [
        f"The database has {GlobalTag.objects.count():,} global tags and {PayloadIOV.objects.count():,} payload IOVs. "
        f"Revisions continue from {restoration.first_revision}."
    ]
    if frozen_before is None:
        lines.append(
            "It is not known which global tags were frozen before. HTTP caches keep responses for frozen tags for "
            f"{settings.CDB_FROZEN_MAX_AGE_SECONDS} s: do not freeze other content under a name that was frozen."
        )
    elif names := restoration.retired_names:
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        lines.append(
            "These global tags were frozen before and are not frozen now. HTTP caches may still have their responses, so "
            f"no tag of these names can be frozen for {settings.CDB_FROZEN_MAX_AGE_SECONDS} s: "
            f"{', '.join(names[:NAMES_SHOWN])}{more}"
        )
    return lines
