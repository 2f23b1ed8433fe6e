"""The command `cdb`: its subcommands, and the exit codes of errors."""

import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import shell_complete

from cdb_client import __version__
from cdb_client.cli import reading, setup, snapshots, writing
from cdb_client.cli.options import COMPLETION, Group
from cdb_client.errors import CdbError

EXIT_CODES = (
    "Exit codes: 0 done, 1 unexpected, 2 usage, 3 not allowed or not logged in, 4 not found, 5 refused by the state of the "
    "tag, 6 wrong data, 75 try later, 130 interrupted."
)


@click.group(cls=Group, epilog=EXIT_CODES)
@click.version_option(__version__, message="cdb %(version)s")
def cdb() -> None:
    """Ask and fill a conditions database service (cdb).

    A TAG is a name, with @REVISION or @TIME for its past, or several with commas: the first one with a valid payload decides.
    A MOMENT is MAJOR, MAJOR,MINOR or open.
    """


for _command in (*reading.COMMANDS, *writing.COMMANDS, *snapshots.COMMANDS, *setup.COMMANDS):
    cdb.add_command(_command)


def main(arguments: Sequence[str]) -> int:
    """Run the command, print an error as one line, and return the exit code."""
    if instruction := os.environ.get(COMPLETION):
        return shell_complete(cdb, {}, "cdb", COMPLETION, instruction)
    try:
        with cdb.make_context("cdb", list(arguments)) as context:
            cdb.invoke(context)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        return _end(error)
    return 0


def _end(error: BaseException) -> int:
    """Say in one line what happened, and return the exit code."""
    code = getattr(error, "exit_code", 1)
    match error:
        case click.exceptions.Exit():
            return int(code)
        case BrokenPipeError():
            # The reader of the pipe has what it wants. What is left in the buffer goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return int(code)
        case KeyboardInterrupt() | click.Abort():
            text, code = "interrupted", 130
        case click.UsageError():
            text = f"{error.format_message()} See `{error.ctx.command_path if error.ctx else 'cdb'} --help`."
        case click.ClickException() | CdbError() | OSError():
            text = str(error)
        case _ if os.environ.get("CDB_DEBUG") == "1":
            raise error
        case _:
            kind = type(error).__name__
            text = f"This is a bug of cdb: {kind}: {error}. Please report it with the output of CDB_DEBUG=1."
    sys.stderr.write(f"cdb: {' '.join(text.split())}\n")
    return int(code)


def run() -> None:
    """The entry point."""
    code = main(sys.argv[1:])
    if code == 130:
        # Threads that still wait for a server would keep the process.
        os._exit(code)
    sys.exit(code)
