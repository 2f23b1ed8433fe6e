"""The process that stops the embedded PostgreSQL when all of its users have died: python -m cdb.embedded.postgres_guard DIRECTORY

The users stop the server themselves when they leave. A user that is killed can't, but the kernel drops its lock.
"""

import contextlib
import sys
from pathlib import Path

from cdb.embedded.server import EmbeddedPostgres
from cdb.processes import memory


def main(directory: Path) -> None:
    """Wait until the server has no user any more, and stop it if none of them did."""
    # The directory may be gone by then.
    with contextlib.suppress(OSError):
        EmbeddedPostgres(directory).guard()


if __name__ == "__main__":
    memory.collect_seldom()
    main(Path(sys.argv[1]))
