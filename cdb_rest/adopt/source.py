"""The connection to a database of nopayloaddb, which is only read."""

import contextlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psycopg2
from psycopg2 import errorcodes
from psycopg2.extensions import parse_dsn

from cdb_rest import named_sql
from cdb_rest.adopt.catalog import NotNopayloaddbError, Schema
from cdb_rest.rules.errors import CdbError

BEGIN = named_sql.load("begin_source_snapshot")
IDENTITY = named_sql.load("source_identity")
SERVER = named_sql.load("source_server")
DECLARE = named_sql.load("declare_source_cursor")
FETCH = named_sql.load("fetch_source_cursor")
CLOSE = named_sql.load("close_source_cursor")
# How often a snapshot that a standby has cancelled is taken again, and the pause before.
ATTEMPTS = 5
PAUSE_SECONDS = 1.0
# A standby that applies a change cancels what needs the state before it.
CANCELLED_BY_STANDBY = {errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED, errorcodes.UNDEFINED_FILE}
PREVENTION = "hot_standby_feedback = on on the standby prevents that"
Result = TypeVar("Result")


class SourceError(CdbError, status=503, code="source_unavailable"):
    """The database that is to be adopted cannot be read. The message has no password.

    `is_cancelled`: whether a standby has cancelled the statement; `is_lost`: whether there is no connection any more.
    """

    is_cancelled = is_lost = False


def _described(error: psycopg2.Error) -> SourceError:
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, psycopg2.errors.QueryCanceled) and "timeout" in reason:
        reason += " (--timeout)"
    is_cancelled = error.pgcode in CANCELLED_BY_STANDBY
    if is_cancelled:
        reason += f" ({PREVENTION})"
    described = SourceError(f"the source: {reason}")
    described.is_cancelled = is_cancelled
    described.is_lost = error.pgcode is None and isinstance(error, psycopg2.OperationalError | psycopg2.InterfaceError)
    return described


def read_url(argument: str) -> str:
    """The libpq URL that the user named: `argument`, or the first line of the file FILE for `@FILE`.

    Raises `SourceError`; also for a password in `argument`, which other users of the machine would see in the list of processes.
    """
    url = argument
    if argument.startswith("@"):
        try:
            url = Path(argument[1:]).expanduser().read_text().split("\n", 1)[0].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(f"{argument[1:]} cannot be read: {error}") from error
    if not url.startswith(("postgresql://", "postgres://")):
        raise SourceError(
            "the URL must look like postgresql://user@host:5432/database, or be @FILE: a file with the URL"
        )
    try:
        named = parse_dsn(url)
    except psycopg2.ProgrammingError:
        raise SourceError("the URL is not valid (special characters are written %XX)") from None
    if url == argument and (named.get("password") or named.get("sslpassword")):
        raise SourceError(
            "the URL has a password, which other users could see in the list of processes: write the URL into a file and name it "
            "as @FILE, or put the password into ~/.pgpass"
        )
    return url


@contextlib.contextmanager
def rows_of_copy(cursor: Any, statement: Any) -> Iterator[Any]:
    """A file with the rows that a COPY statement sends while it is read. Raises the driver's error at the end of the block."""
    reading, writing = os.pipe()
    failures: list[Exception] = []

    def send() -> None:
        try:
            # psycopg2 prints an error of its own if the server ends the connection meanwhile.
            with os.fdopen(writing, "wb") as file, contextlib.redirect_stderr(io.StringIO()):
                cursor.copy_expert(statement, file, 1 << 20)
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=send, name="rows of a COPY", daemon=True)
    thread.start()
    try:
        with os.fdopen(reading, "rb") as file:
            yield file
    finally:
        # If the block failed, nobody reads any more, and the next write of the thread fails.
        thread.join()
    for failure in failures:
        raise failure


class Snapshot:
    """A read-only transaction of the source. `name` is the snapshot as PostgreSQL writes it."""

    def __init__(self, connection: Any, schema: Schema, name: str) -> None:
        self.connection, self.schema, self.name = connection, schema, name

    def rows(self, statement: str, values: dict[str, Any] | None = None, **parts: str) -> list[tuple[Any, ...]]:
        """The rows of a statement of sql/adopt.sql, whose placeholders are replaced for this source. Raises `SourceError`."""
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(self.schema.statement(statement, **parts), values or {})
                return cursor.fetchall()  # type: ignore[no-any-return]
        except psycopg2.Error as error:
            raise _described(error) from error

    def stream(self, statement: str, values: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, as `rows` returns them, but some at a time. Read all of them. Raises `SourceError`."""
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(DECLARE.replace("{statement}", self.schema.statement(statement)), values)
                cursor.execute(FETCH)
                while rows := cursor.fetchall():
                    yield from rows
                    cursor.execute(FETCH)
                cursor.execute(CLOSE)
        except psycopg2.Error as error:
            raise _described(error) from error

    @contextlib.contextmanager
    def copy(self, statement: str, values: dict[str, Any], **parts: str) -> Iterator[Any]:
        """A file with the rows that a COPY statement sends while it is read. Raises `SourceError` at the end of the block."""
        try:
            with self.connection.cursor() as cursor:
                text = cursor.mogrify(self.schema.statement(statement, **parts), values)
                with rows_of_copy(cursor, text) as file:
                    yield file
        except psycopg2.Error as error:
            raise _described(error) from error


class Source:
    """A database of nopayloaddb. `url` may have a password, which no message has.

    `identity` is the same for a server and its standbys. `address` is for messages. The constructor connects; it raises
    `SourceError` or `NotNopayloaddbError`.
    """

    def __init__(self, url: str, timeout_seconds: float) -> None:
        named = parse_dsn(url)
        host, port = named.get("host") or "localhost", named.get("port", "5432")
        self.database = str(named.get("dbname") or named.get("user", ""))
        self.address = f"{host}:{port}/{self.database}"
        self.retries = 0
        self._timeout = str(round(timeout_seconds * 1000))
        self._url = url
        self.connection = self._connect()
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(SERVER)
                self.server_version, self.is_standby, self.feedback = cursor.fetchone()
                self.schema = Schema.read(cursor, self.address)
                try:
                    cursor.execute(IDENTITY)
                    [(identity,)] = cursor.fetchall()
                except psycopg2.errors.InsufficientPrivilege:
                    identity = self.address
        except psycopg2.Error as error:
            self.close()
            raise _described(error) from error
        except NotNopayloaddbError:
            self.close()
            raise
        self.identity = f"{identity}/{self.schema.name}"

    def _connect(self) -> Any:
        try:
            connection = psycopg2.connect(
                self._url, connect_timeout=10, fallback_application_name="cdb-adopt", client_encoding="UTF8"
            )
        except psycopg2.Error as error:
            raise _described(error) from error
        connection.autocommit = True
        return connection

    @property
    def note(self) -> str:
        """What the operator should know about the reading so far, '' if nothing."""
        return f"A standby cancelled {self.retries} reads, which were repeated; {PREVENTION}." if self.retries else ""

    def close(self) -> None:
        """End the connection."""
        self.connection.close()

    def read(self, use: Callable[[Snapshot], Result]) -> Result:
        """Call `use` with a new snapshot, and return its result. It is called again after a standby has cancelled a statement.

        Raises `SourceError` if the source cannot be read, and the errors of `use`.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._use(use)
            except SourceError as error:
                # A session that waits for its client is ended by a standby, without a reason that the driver would tell.
                is_cancelled = error.is_cancelled or (self.is_standby and error.is_lost)
                if not is_cancelled or attempt == ATTEMPTS:
                    raise
                self.retries += 1
                time.sleep(PAUSE_SECONDS * attempt)
        raise AssertionError("unreachable")

    def _use(self, use: Callable[[Snapshot], Result]) -> Result:
        if self.connection.closed:
            self.connection = self._connect()
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(BEGIN, {"schema": self.schema.name, "timeout": self._timeout})
                [(name,)] = cursor.fetchall()
                result = use(Snapshot(self.connection, self.schema, name))
                # What `use` has stored is committed. If the source has ended the session meanwhile, the next read connects again.
                try:
                    cursor.execute("ROLLBACK")
                except psycopg2.Error:
                    self.close()
                return result
        except psycopg2.Error as error:
            self.close()
            raise _described(error) from error
        except BaseException:
            self.close()
            raise
