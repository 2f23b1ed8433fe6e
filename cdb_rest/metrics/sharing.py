"""Counting together with other processes."""

from pathlib import Path

from cdb_rest.metrics.place import here
from cdb_rest.metrics.slots import Slots
from cdb_rest.metrics.values import Number

slots: Slots | None = None


def share(directory: Path) -> None:
    """Let the metrics, none of which is made yet, be counted together with other processes, in `directory`."""
    global slots
    # A second time only where gunicorn reads its configuration again.
    if slots is None:
        here.directory = directory
        slots = Slots(directory)
        Number.keep_in(slots)
