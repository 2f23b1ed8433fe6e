"""The command `cdb`: its errors and exit codes."""

import os
import signal
import sys
from collections.abc import Sequence

import click

# The modules add their commands to the group.
from cdb_client.cli import reading, requests, setup, snapshots, writing  # noqa: F401
from cdb_client.cli.options import cdb as cdb
from cdb_client.errors import CdbError


def main(arguments: Sequence[str]) -> int:
    """Run the command, print an error as one line, and return the exit code."""
    try:
        with cdb.make_context("cdb", list(arguments) or ["--help"]) as context:
            cdb.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # The reader of the pipe has what it wants. What is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (KeyboardInterrupt, click.Abort):
        return _failed(130, "interrupted")
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "cdb"
        text = error.format_message()
        return _failed(2, f"{text}{'' if text.endswith(('.', '?')) else '.'} See `{command} --help`.")
    except (CdbError, OSError) as error:
        return _failed(getattr(error, "exit_code", 1), str(error))
    except Exception as error:
        if os.environ.get("CDB_DEBUG") == "1":
            raise
        return _failed(1, f"This is a bug of cdb: {error!r}. Please report it with the output of CDB_DEBUG=1.")
    return 0


def _failed(code: int, text: str) -> int:
    sys.stderr.write(f"cdb: {' '.join(text.split())}\n")
    return code


def run() -> None:
    """The entry point."""
    # Batch systems end programs with SIGTERM; unfinished files are removed as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if "_CDB_COMPLETE" in os.environ:
        # The shell asks for completions: click prints them, and ends the process.
        cdb.main(prog_name="cdb")
    code = main(sys.argv[1:])
    if code == 130:
        # Threads that still wait for a server would keep the process.
        os._exit(code)
    sys.exit(code)
