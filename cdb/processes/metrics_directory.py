"""The directory in which all processes of one service store their metric files (`cdb_rest/metrics/slots.py`).

CDB_DATA_DIR and PORT identify the service.
"""

import shutil
from pathlib import Path

from cdb import env
from cdb.processes import directories


def path() -> Path:
    """The path of the directory of this service. Raises `ConfigurationError` if a setting is invalid.

    It is in /dev/shm, which avoids disk writes. If /dev/shm does not exist, it is in CDB_DATA_DIR.
    """
    values = env.read()
    return path_of(values["CDB_DATA_DIR"], values["PORT"])


def path_of(data: Path, port: int) -> Path:
    """The path of the directory of the service with this data directory and port.

    `data` must be absolute and resolved, as `env.read` returns it, because the name is a digest of the path.
    """
    wanted = data / f"metrics-{port}"
    return directories.MEMORY / f"cdb-metrics-{directories.digest(wanted)}" if directories.MEMORY.is_dir() else wanted


def recreate() -> None:
    """Remove the directory and create an empty one, because an earlier version may have written the files.

    The caller must ensure that no process that stores metrics in it is running. Errors of the removal are ignored.
    Raises `ConfigurationError` as `ensure` does.
    """
    remove()
    ensure()


def ensure() -> Path:
    """Create the directory, for this account only, unless it exists. Returns its path.

    Raises `ConfigurationError` if a setting is invalid, or if the path is not a directory of this account that other
    accounts cannot access.
    """
    path().parent.mkdir(parents=True, exist_ok=True)
    directories.make_private(path(), None)
    return path()


def remove() -> None:
    """Remove the directory with all metrics, after all processes of the service have ended. Errors are ignored."""
    shutil.rmtree(path(), ignore_errors=True)
