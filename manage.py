#!/usr/bin/env python
"""Django's command line; with the embedded PostgreSQL, every command that needs it finds it running."""

import sys

from cdb.management import command_line
from cdb.processes import signals

if __name__ == "__main__":
    # A command that is told to end must get the chance to stop what it started.
    signals.install()
    sys.exit(command_line.main(sys.argv))
