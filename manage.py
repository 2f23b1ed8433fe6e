#!/usr/bin/env python
"""Django's command line; with the embedded PostgreSQL, every command that needs it finds it running."""

import gc
import os
import sys

# With the default of 700, imports cause hundreds of collections that find nothing: `manage.py help` takes a third less time.
gc.set_threshold(50_000)

# numpy's library for matrices would start a thread for each processor, which would take the signals that are meant for a command.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from cdb.management import command_line  # noqa: E402 -- what it imports is what takes long

if __name__ == "__main__":
    sys.exit(command_line.main(sys.argv))
