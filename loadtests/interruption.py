"""Signal handling of the load test programs."""

import os
import signal

INTERRUPTED = 128 + signal.SIGINT


def prepare_process() -> None:
    """Handle SIGTERM and SIGHUP like Ctrl-C, and remove libpq's variables (PG…) from the environment.

    A shell ignores SIGINT for background jobs, so its handler is set as well. libpq's variables could redirect
    connections.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    for name in [name for name in os.environ if name.startswith("PG")]:
        del os.environ[name]
