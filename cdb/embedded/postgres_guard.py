"""The guard process of the embedded PostgreSQL: python -m cdb.embedded.postgres_guard DIRECTORY

It stops the server when all processes that used it have ended. Normally the last user stops the server itself. A
process that is killed can't do that, but the kernel releases its lock, and the guard then obtains it.
"""

import contextlib
import fcntl
import sys
from pathlib import Path

from cdb.embedded import locks
from cdb.processes import memory


def main(directory: Path) -> None:
    """Wait until no process uses the embedded server in `directory`, and stop the server if it still runs."""
    # The directory may have been removed by then.
    with contextlib.suppress(OSError), locks.opened(directory / locks.USERS) as users:
        while True:
            fcntl.flock(users, fcntl.LOCK_EX)
            # Users acquire the control lock first, so waiting for it while holding this lock would be a deadlock.
            fcntl.flock(users, fcntl.LOCK_UN)
            with locks.control(directory):
                if locks.try_lock(users, fcntl.LOCK_EX):
                    _stop(directory)
                    # The next user must start a new guard.
                    (directory / locks.GUARD).unlink(missing_ok=True)
                    return


def _stop(directory: Path) -> None:
    # A server that was stopped has removed this file itself.
    if not (directory / "data" / "postmaster.pid").exists():
        return
    # Imported only now, because it needs time and memory.
    from cdb.embedded.server import EmbeddedPostgres

    EmbeddedPostgres(directory).stop()


if __name__ == "__main__":
    memory.reduce_garbage_collection()
    main(Path(sys.argv[1]))
