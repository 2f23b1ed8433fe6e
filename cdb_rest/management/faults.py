"""The report of commands that find faults and repair them."""

from collections.abc import Sequence

from django.core.management.base import BaseCommand, CommandError

from cdb_rest.maintenance.history_check import HistoryFault
from cdb_rest.maintenance.repair import Fault
from cdb_rest.management.tables import table

Faults = Sequence[Fault | HistoryFault]


def show(command: BaseCommand, faults: Faults) -> None:
    """Print a table of faults, if there are any."""
    rows = [(one.kind, one.global_tag or "-", one.payload_list or "-", one.description) for one in faults]
    if rows:
        command.stdout.write(table(("fault", "global tag", "payload list", "description"), rows))


def report(command: BaseCommand, found: Faults, left: Faults, *, is_repaired: bool, took: str) -> None:
    """Print what was found, and what a repair has left of it. Raises `CommandError` if faults remain."""
    if not found:
        command.stdout.write(f"No faults found ({took}).")
    elif not is_repaired:
        raise CommandError(f"faults: {len(found):,} ({took}); --repair repairs them")
    elif left:
        command.stdout.write("Not repaired, because the tag is frozen:")
        show(command, left)
        raise CommandError(f"faults not repaired: {len(left):,} of {len(found):,} ({took})")
    else:
        command.stdout.write(f"Faults repaired: {len(found):,} ({took}).")
