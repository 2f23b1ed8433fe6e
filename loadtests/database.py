"""The rig's own way to the database beside the service: psycopg2, and pgbench out of the wheel."""

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812

from cdb.embedded import postgres_binaries

SQL = Path(__file__).parent / "sql"
PGBENCH = postgres_binaries.BINARIES / "pgbench"


def text_of(name: str) -> str:
    """The statement in a file of the rig's own SQL."""
    return (SQL / f"{name}.sql").read_text()


@dataclass(frozen=True)
class Database:
    """One database of the embedded server, by its libpq URL."""

    url: str

    @contextlib.contextmanager
    def connect(self, *, autocommit: bool = True) -> Iterator[Connection]:
        """A connection; without `autocommit`, what is not committed is rolled back at the end."""
        with contextlib.closing(psycopg2.connect(self.url)) as connection:
            connection.autocommit = autocommit
            yield connection

    def run(self, statement: str, parameters: Any = None) -> None:
        """Run statements, each in a transaction of its own if there is only one."""
        with self.connect() as connection:
            connection.cursor().execute(statement, parameters)

    def value(self, statement: str, parameters: Any = None) -> Any:
        """The first value of the first row, or None without rows."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
            return row[0] if row else None

    def sibling(self, name: str) -> "Database":
        """Another database of the same server."""
        return Database(re.sub(r"@/\w+\?", f"@/{name}?", self.url))

    def drop_sibling(self, name: str) -> None:
        """Remove another database of the same server, connections included, if it is there."""
        self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def create_sibling(self, name: str) -> "Database":
        """Another database of the same server, new and empty."""
        self.drop_sibling(name)
        self.run(f'CREATE DATABASE "{name}"')
        return self.sibling(name)


@dataclass(frozen=True)
class Transactions:
    """What pgbench measured. Times in milliseconds."""

    rate: float
    count: int
    failed: int
    latency: float
    cpu_seconds: float


def pgbench(database: Database, script: str, *, clients: int, seconds: int, mode: str, seed: int = 1) -> Transactions:
    """Run a script of pgbench with `mode` simple or prepared. Raises `RuntimeError` with what it said if it failed."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file, tempfile.TemporaryFile("w+") as output:
        file.write(script)
        file.flush()
        threads = min(clients, len(os.sched_getaffinity(0)))
        process = subprocess.Popen(
            [str(PGBENCH), "--no-vacuum", "--file", file.name, "--client", str(clients), "--jobs", str(threads),
             "--time", str(seconds), "--protocol", mode, "--random-seed", str(seed), database.url],
            stdout=output, stderr=subprocess.STDOUT, env=postgres_binaries.ENVIRONMENT, start_new_session=True,
        )  # fmt: skip
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            process.wait()
            raise
        output.seek(0)
        return _transactions(output.read(), usage.ru_utime + usage.ru_stime)


def _transactions(said: str, cpu: float) -> Transactions:
    rate = re.search(r"^tps = ([\d.]+)", said, re.MULTILINE)
    if rate is None or "aborted" in said:
        raise RuntimeError(f"pgbench failed: {' '.join(said.split())[-500:]}")
    return Transactions(
        rate=float(rate[1]),
        count=int(_found(r"transactions actually processed: (\d+)", said)),
        failed=int(_found(r"number of failed transactions: (\d+)", said)),
        latency=float(_found(r"latency average = ([\d.]+)", said)),
        cpu_seconds=cpu,
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else "0"
