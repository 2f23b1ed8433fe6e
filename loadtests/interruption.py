"""How the programs here end when they are told to."""

import os
import signal

INTERRUPTED = 128 + signal.SIGINT


def prepare_process() -> None:
    """Be told to end by SIGTERM as by Ctrl-C, also in the background of a shell, and let nothing of libpq's environment divert
    our connections."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
