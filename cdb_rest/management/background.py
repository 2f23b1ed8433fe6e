"""The option `--background`, for commands that the service starts as processes of their own."""

import os
import signal
import sys
import threading

from django.core.management.base import CommandParser

# With the lowest one (19), a compilation on a busy machine took a quarter longer, although `background_share` limits it.
LOW_PRIORITY = 5


def add_background_option(parser: CommandParser) -> None:
    """Add the option `--background`."""
    parser.add_argument(
        "--background",
        action="store_true",
        help="for the service only: work with low priority, and end when standard input is closed",
    )


def run_in_background() -> None:
    """Give this process a low priority, and send it SIGTERM when its standard input is closed."""
    os.nice(LOW_PRIORITY)
    threading.Thread(target=_wait_for_end, name="background", daemon=True).start()


def background_share() -> float:
    """The number of cores that a long command may use in the background: a fortieth of this machine, and at most one core.

    The caller pauses accordingly. PostgreSQL needs as much again for the rows that it sends.
    """
    return min(1, len(os.sched_getaffinity(0)) / 40)


def _wait_for_end() -> None:
    # Of the descriptor, because a thread that waits in `sys.stdin` holds its lock, and then the interpreter cannot end.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
