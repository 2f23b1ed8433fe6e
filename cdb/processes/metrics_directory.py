"""The directory in which the processes of one service count together (`cdb_rest/metrics/slots.py`)."""

import shutil
from pathlib import Path

from cdb import env
from cdb.processes import directories


def path() -> Path:
    """Where it is: in memory where the machine has such a place, so that counting costs no disk, else under CDB_DATA_DIR."""
    values = env.read()
    return path_of(values["CDB_DATA_DIR"], values["PORT"])


def path_of(data: Path, port: int) -> Path:
    """The same for the service of that data directory and port."""
    wanted = data / f"metrics-{port}"
    return directories.MEMORY / f"cdb-metrics-{directories.digest(wanted)}" if directories.MEMORY.is_dir() else wanted


def renew() -> None:
    """Begin to count anew: nobody counts into it, and it may have metrics of an earlier version.

    Raises `ConfigurationError` where somebody else has taken its place.
    """
    remove()
    ready()


def ready() -> Path:
    """The directory, made if it does not exist. Raises `ConfigurationError` where somebody else has taken its place."""
    path().parent.mkdir(parents=True, exist_ok=True)
    directories.make_private(path(), None)
    return path()


def remove() -> None:
    """Forget what was counted."""
    shutil.rmtree(path(), ignore_errors=True)
