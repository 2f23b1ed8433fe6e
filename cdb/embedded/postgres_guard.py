"""The process that stops the embedded PostgreSQL when all of its users have died: python -m cdb.embedded.postgres_guard DIRECTORY

The users stop the server themselves when they leave. A user that is killed can't, but the kernel drops its lock.
"""

import contextlib
import fcntl
import sys
from pathlib import Path

from cdb.embedded import locks
from cdb.processes import memory


def main(directory: Path) -> None:
    """Wait until the server has no user any more, and stop it if none of them did."""
    # The directory may be gone by then.
    with contextlib.suppress(OSError), locks.opened(directory / locks.USERS) as users:
        while True:
            fcntl.flock(users, fcntl.LOCK_EX)
            # Users take the control lock first, so it can't be waited for with this one held.
            fcntl.flock(users, fcntl.LOCK_UN)
            with locks.control(directory):
                if locks.try_lock(users, fcntl.LOCK_EX):
                    _stop(directory)
                    # The next user needs another guard.
                    (directory / locks.GUARD).unlink(missing_ok=True)
                    return


def _stop(directory: Path) -> None:
    # Where the server was stopped, it has removed its own record.
    if not (directory / "data" / "postmaster.pid").exists():
        return
    # After the long wait, because its imports take time and memory.
    from cdb.embedded.server import EmbeddedPostgres

    EmbeddedPostgres(directory).stop()


if __name__ == "__main__":
    memory.collect_seldom()
    main(Path(sys.argv[1]))
