#!/usr/bin/env python
"""Django's command line; with the embedded PostgreSQL, every command that needs it finds it running."""

import signal
import sys

from cdb.management import command_line

if __name__ == "__main__":
    # A command that is told to end must get the chance to stop what it started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    # A shell lets what it starts in the background ignore this one; but who sends it means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(command_line.main(sys.argv))
