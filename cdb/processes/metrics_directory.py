"""The directory of the metric files that all processes of one service share (`cdb_rest/metrics/slots.py`)."""

import shutil
from pathlib import Path

from cdb import env
from cdb.processes import directories


def path() -> Path:
    """The path of the directory: in /dev/shm, to avoid disk writes, or under CDB_DATA_DIR if that does not exist."""
    values = env.read()
    return path_of(values["CDB_DATA_DIR"], values["PORT"])


def path_of(data: Path, port: int) -> Path:
    """The same for the service of that data directory and port."""
    wanted = data / f"metrics-{port}"
    return directories.MEMORY / f"cdb-metrics-{directories.digest(wanted)}" if directories.MEMORY.is_dir() else wanted


def recreate() -> None:
    """Remove the directory, which may have metrics of an earlier version, and create an empty one.

    No process may use it meanwhile. Raises `ConfigurationError` if the path belongs to another account.
    """
    remove()
    ensure()


def ensure() -> Path:
    """Create the directory if it does not exist, and return it.

    Raises `ConfigurationError` if the path belongs to another account.
    """
    path().parent.mkdir(parents=True, exist_ok=True)
    directories.make_private(path(), None)
    return path()


def remove() -> None:
    """Remove the directory with all metrics."""
    shutil.rmtree(path(), ignore_errors=True)
