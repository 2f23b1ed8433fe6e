"""The directory of the metrics that all processes of the service share (prometheus_client's multiprocess mode)."""

import shutil
from pathlib import Path

from cdb import env
from cdb.processes import directories


def recreate() -> Path:
    """Empty the directory before any process of the service starts, and return its path for PROMETHEUS_MULTIPROC_DIR.

    It is in memory: a mapped file on a full disk would end its process. Raises `ConfigurationError` if it belongs to another
    account.
    """
    path = _path()
    shutil.rmtree(path, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    directories.make_private(path, None)
    return path


def remove() -> None:
    """Remove the directory, after all processes of the service have ended."""
    shutil.rmtree(_path(), ignore_errors=True)


def _path() -> Path:
    return directories.in_memory(env.read()["CDB_DATA_DIR"] / "metrics")
