"""Direct access of the harness to the database."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812

SQL = Path(__file__).parent / "sql"
CONNECT_SECONDS = 5


def text_of(name: str) -> str:
    """The text of the statement loadtests/sql/NAME.sql."""
    return (SQL / f"{name}.sql").read_text()


@dataclass(frozen=True)
class Database:
    """A database of the embedded server; `url` is its libpq URL."""

    url: str

    @contextlib.contextmanager
    def connect(self, *, autocommit: bool = True) -> Iterator[Connection]:
        """Connect inside the block; without `autocommit`, uncommitted changes are rolled back at its end."""
        with contextlib.closing(psycopg2.connect(self.url, connect_timeout=CONNECT_SECONDS)) as connection:
            connection.autocommit = autocommit
            yield connection

    def run(self, statement: str, parameters: Any = None) -> None:
        """Execute SQL with autocommit; several statements in one call share a transaction."""
        with self.connect() as connection:
            connection.cursor().execute(statement, parameters)

    def value(self, statement: str, parameters: Any = None) -> Any:
        """Execute a query and return the first column of its first row; None without rows."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            row = cursor.fetchone()
            return row[0] if row else None

    def responds(self) -> bool:
        """Whether it executes a statement on a new connection."""
        with contextlib.suppress(psycopg2.Error):
            return self.value("SELECT 1") == 1
        return False

    @contextlib.contextmanager
    def sibling(self, name: str) -> Iterator["Database"]:
        """An empty database `name` on the same server inside the block; an existing one is dropped first."""
        drop = f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'
        self.run(drop)
        try:
            self.run(f'CREATE DATABASE "{name}"')
            yield Database(re.sub(r"@/\w+\?", f"@/{name}?", self.url))
        finally:
            self.run(drop)
