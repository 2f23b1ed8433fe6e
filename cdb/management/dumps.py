"""Dumps of a database: pg_dump and pg_restore, in the custom format of pg_dump."""

import contextlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.core.management.base import CommandError
from tqdm import tqdm

from cdb import env
from cdb.embedded import binaries
from cdb.processes import machine

# A table that every dump of cdb has.
TABLE = "TABLE DATA public PayloadIOV "
# What pg_restore 17 and later set, and PostgreSQL 16 and earlier do not know. It does not matter for the content.
HARMLESS = re.compile(r'unrecognized configuration parameter "transaction_timeout"')
STEP = re.compile(r"pg_restore: (?:launching|finished) item|pg_restore: (?:creating|processing) ")
INTERVAL_SECONDS = 0.2


def dump(database: Mapping[str, str], file: Path) -> None:
    """Write a dump of the database with these connection parameters, and read it back. Raises `CommandError`.

    The file appears when it is complete, and only its owner can read it.
    """
    unfinished = file.with_name(f"{file.name}.part")
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        arguments = "--format=custom", f"--file={unfinished}", "--dbname=service=cdb"
        with (
            tqdm(disable=None, leave=False, unit="B", unit_scale=True) as bar,
            _service(database) as settings,
            _running(settings, "pg_dump", *arguments) as process,
        ):
            while process.poll() is None:
                bar.update(unfinished.stat().st_size - bar.n)
                time.sleep(INTERVAL_SECONDS)
            _check(process, process.communicate()[1])
        check_readable(unfinished)
        # All data, not only the list of contents.
        with _running({}, "pg_restore", f"--file={os.devnull}", str(unfinished)) as process:
            _check(process, process.communicate()[1])
        unfinished.replace(file)
    except OSError as error:
        raise CommandError(f"can't write {file}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def check_readable(file: Path) -> int:
    """The number of entries of a dump of cdb. Raises `CommandError`, with the error of pg_restore, if it is none."""
    with _running({}, "pg_restore", "--list", str(file)) as process:
        listed, errors = process.communicate()
        _check(process, errors)
    if TABLE not in listed:
        raise CommandError(f"{file} is not a dump of cdb: it has no table PayloadIOV")
    return sum(not line.startswith(";") for line in listed.splitlines())


def load(file: Path, database: Mapping[str, str]) -> None:
    """Restore a dump into the empty database with these connection parameters. Raises `CommandError`."""
    entries = check_readable(file)
    arguments = "--verbose", f"--jobs={machine.cores()}", "--no-owner", "--no-privileges", "--dbname=service=cdb"
    with (
        tqdm(disable=None, leave=False, total=entries, unit=" objects") as bar,
        _service(database) as settings,
        _running(settings, "pg_restore", *arguments, str(file)) as process,
    ):
        lines = []
        for line in process.stderr or ():
            bar.update(bool(STEP.match(line)) and bar.n < entries)
            lines.append(line)
        _check(process, "".join(lines))


def _check(process: "subprocess.Popen[str]", output: str) -> None:
    """Raise `CommandError` with the first error in the output of a program, after waiting for its end."""
    code = process.wait()
    errors = [line for line in output.splitlines() if "error: " in line and not HARMLESS.search(line)]
    if errors or (code and "error: " not in output):
        reason = errors[0].partition("error: ")[2] if errors else " ".join(output.split()) or f"exit code {code}"
        raise CommandError(f"{Path(process.args[0]).name} failed: {reason}")  # type: ignore[index,arg-type]  # a list


@contextlib.contextmanager
def _running(settings: Mapping[str, str], program: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A program of PostgreSQL, which is ended with the block. `settings` are environment variables."""
    process = subprocess.Popen(  # noqa: S603
        [binaries.path_of(program), *arguments],
        env=env.child_environment(LC_ALL="C", **settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ctrl-C reaches only this process.
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


@contextlib.contextmanager
def _service(database: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Environment variables by which libpq finds the database as the service `cdb`: a password must not be on a command line."""
    with tempfile.NamedTemporaryFile("w", prefix="cdb-service-") as file:
        file.write("[cdb]\n" + "".join(f"{name}={value}\n" for name, value in database.items()))
        file.flush()
        yield {"PGSERVICEFILE": file.name}
