"""The command `cdb`."""
