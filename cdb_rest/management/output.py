"""What commands print: tables, and the faults that they have found and repaired."""

from collections.abc import Sequence

from django.core.management.base import BaseCommand, CommandError

from cdb_rest.maintenance.history_check import HistoryFault
from cdb_rest.maintenance.repair import Fault

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
    rows = [(one.kind, one.global_tag or "-", one.payload_list or "-", one.description) for one in faults]
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
