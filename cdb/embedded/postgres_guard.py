"""The process that stops the embedded PostgreSQL when all of its users have died: python -m cdb.embedded.postgres_guard DIRECTORY

The users stop the server themselves when they leave. A user that is killed can't, but the kernel drops its lock.
"""

import contextlib
import subprocess
import sys
from pathlib import Path

from cdb.env import ROOT


def start(directory: Path, lock: int) -> None:
    """Start the guard of the embedded server in `directory`, in a session of its own.

    `lock` is the descriptor of a lock that we have. The guard inherits it, and so has it as long as it lives.
    """
    subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", __name__, str(directory)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[lock],
    )


def main(directory: Path) -> None:
    """Wait until the server has no user any more, and stop it if none of them did."""
    from cdb.embedded.server import EmbeddedPostgres

    # The directory may be gone by then.
    with contextlib.suppress(OSError):
        EmbeddedPostgres(directory).guard()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
