"""`python -m cdb_client` is the command `cdb`."""

from cdb_client.cli.main import run

run()
