"""The command `cdb`: its subcommands, and the exit codes of errors."""

import sys
from collections.abc import Sequence

import click

from cdb_client.errors import CdbError


@click.group()
def cdb() -> None:
    """Ask a conditions database service (cdb)."""


def main(arguments: Sequence[str]) -> int:
    """Run the command, print an error as one line, and return the exit code."""
    try:
        cdb.main(list(arguments), prog_name="cdb", standalone_mode=False)
    except CdbError as error:
        click.echo(f"cdb: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    return 0


def run() -> None:
    """The entry point."""
    sys.exit(main(sys.argv[1:]))
