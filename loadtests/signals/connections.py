"""Sessions of PostgreSQL by state, and the wait events of active ones."""

from collections import defaultdict
from typing import Any

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812

from loadtests.database import text_of

# These columns exist in every row, so that plots show zeros.
ALWAYS = ("connections.active", "connections.idle", "connections.idle_in_transaction", "waits.none")
CONNECT_SECONDS = 2
STATEMENT_MILLISECONDS = 900


class Connections:
    """Columns about PostgreSQL, read over a separate connection that is not counted and is reopened after an error."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._statement = text_of("signal_connections")
        self._connection: Connection | None = None

    def read(self) -> dict[str, float]:
        """The sessions by state, `connections.<state>`, and the active ones by wait event, `waits.<type>:<event>`.

        `waits.none` are those that wait for nothing. Raises `psycopg2.Error` if PostgreSQL does not respond.
        """
        columns: dict[str, float] = defaultdict(float, dict.fromkeys(ALWAYS, 0.0))
        for state, wait, count in self._rows():
            columns[f"connections.{state.replace(' ', '_')}"] += count
            if wait is not None:
                columns[f"waits.{wait}"] += count
        return dict(columns)

    def close(self) -> None:
        """Close the connection; the next `read` opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _rows(self) -> list[tuple[str, str | None, int]]:
        try:
            if self._connection is None:
                limit = f"-c statement_timeout={STATEMENT_MILLISECONDS}"
                name: dict[str, Any] = {"application_name": "cdb-load", "options": limit}
                self._connection = psycopg2.connect(self._url, connect_timeout=CONNECT_SECONDS, **name)
                self._connection.autocommit = True
            with self._connection.cursor() as cursor:
                cursor.execute(self._statement)
                return cursor.fetchall()
        except psycopg2.Error:
            self.close()
            raise
