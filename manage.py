#!/usr/bin/env python
"""Django's command line; with the embedded PostgreSQL, every command that needs it finds it running."""

import sys

from cdb.processes import memory

memory.reduce_garbage_collection()

from cdb.management import command_line  # noqa: E402 -- what it imports is what takes long
from cdb.processes import signals  # noqa: E402

if __name__ == "__main__":
    # A command that is told to end must get the chance to stop what it started.
    signals.install()
    sys.exit(command_line.main(sys.argv))
