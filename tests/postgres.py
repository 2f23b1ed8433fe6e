"""A pytest plugin that gives a test run a directory of its own, and in it an embedded PostgreSQL unless DATABASE_URL names one.

It is loaded before Django's settings are, with ``-p tests.postgres``; the parallel workers inherit directory and URL by
environment variables. The server starts when the first test wants it, and stops with the last process of the run.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

# A developer's own settings must not decide what the tests see.
for name in [name for name in os.environ if name.startswith("CDB_") or name in ("DEBUG", "PORT", "SCENARIO")]:
    del os.environ[name]
os.environ["CDB_ENV_FILE"] = os.devnull
# Tests of access turn it off.
os.environ["CDB_OPEN_WRITES"] = "true"
# Tests of compiled lists turn them on, with a directory of their own.
os.environ["CDB_COMPILED_BYTES"] = "0"

from cdb.embedded.server import EmbeddedPostgres  # noqa: E402 -- reads the environment

# Nothing here has to survive a crash, so nothing waits for the disk. (Asynchronous commits would bring nothing more, and
# they keep VACUUM from marking fresh rows as visible, which the tests of plans need.)
FAST = {
    "fsync": "off", "full_page_writes": "off", "max_wal_size": "1GB", "shared_buffers": "1GB", "max_connections": "400",
}  # fmt: skip

# A run has a database for each of some hundred services, together up to 5 GB. In memory it takes two thirds of the time.
IN_MEMORY, LEAST_FREE = Path("/dev/shm"), 12 * 2**30  # noqa: S108


def _has_memory() -> bool:
    """Whether the temporary files of a run fit into the memory."""
    free = (psutil.virtual_memory().available, psutil.disk_usage(str(IN_MEMORY)).free if IN_MEMORY.is_dir() else 0)
    # Some tests execute programs that they write.
    is_usable = os.access(IN_MEMORY, os.W_OK) and not os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC
    return is_usable and min(free) >= LEAST_FREE


_made = None
if "TESTS_DIRECTORY" not in os.environ:
    if "TMPDIR" not in os.environ and _has_memory():
        # A short name, because paths of sockets are limited.
        tempfile.tempdir = os.environ["TMPDIR"] = _made = tempfile.mkdtemp(prefix="cdb-", dir=IN_MEMORY)
        # Services run as other accounts, too.
        Path(_made).chmod(0o755)
    os.environ["TESTS_DIRECTORY"] = tempfile.mkdtemp(prefix="cdb-test-")
    _made = _made or os.environ["TESTS_DIRECTORY"]
DIRECTORY = Path(os.environ["TESTS_DIRECTORY"])
_server = EmbeddedPostgres(DIRECTORY / "postgres", FAST)
if not os.environ.get("DATABASE_URL"):
    os.environ["DATABASE_URL"] = _server.url


@contextlib.contextmanager
def running() -> Iterator[None]:
    """The server of DATABASE_URL runs, until the last process of the run that asked for it ends."""
    if os.environ["DATABASE_URL"] != _server.url:
        yield
        return
    _server.acquire()
    try:
        yield
    finally:
        _server.release()


@pytest.fixture(scope="session")
def postgres() -> Iterator[None]:
    """The server of DATABASE_URL runs."""
    with running():
        yield


def pytest_unconfigure() -> None:
    if _made is not None:
        shutil.rmtree(_made, ignore_errors=True)
