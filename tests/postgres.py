"""A pytest plugin that gives a test run its own embedded PostgreSQL, unless DATABASE_URL names one.

It is loaded before Django's settings are, with ``-p tests.postgres``; the parallel workers inherit the server by the
environment variable.
"""

import os
import shutil
import tempfile
from pathlib import Path

# Nothing here has to survive a crash, so nothing waits for the disk. (Asynchronous commits would bring nothing more, and
# they keep VACUUM from marking fresh rows as visible, which the tests of plans need.)
FAST = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "1GB"}

# A developer's own settings must not decide what the tests see.
for name in [name for name in os.environ if name.startswith("CDB_") or name in ("DEBUG", "PORT", "SCENARIO")]:
    del os.environ[name]
os.environ["CDB_ENV_FILE"] = os.devnull

_directory = None
if not os.environ.get("DATABASE_URL"):
    from cdb.embedded_postgres import EmbeddedPostgres

    _directory = Path(tempfile.mkdtemp(prefix="cdb-test-"))
    _server = EmbeddedPostgres(_directory / "postgres", FAST)
    _server.acquire()
    os.environ["DATABASE_URL"] = _server.url


def pytest_unconfigure() -> None:
    if _directory is not None:
        _server.release()
        shutil.rmtree(_directory, ignore_errors=True)
