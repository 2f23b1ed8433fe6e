"""Streaming of COPY … TO STDOUT: the output as an iterator over chunks of bytes, with back pressure."""

import contextlib
import contextvars
import io
import os
import queue
import socket
import threading
from collections.abc import Iterator
from typing import Any

import psycopg2
from django.db import connection

# Size of a chunk, and how many chunks may be queued. Together they limit the memory of a copy of any size.
CHUNK_BYTES = 128 * 1024
QUEUED_CHUNKS = 4
# A server from which no chunk arrives for this long is considered down. Normally one arrives every few milliseconds.
SILENCE_SECONDS = 30


@contextlib.contextmanager
def stream_copy(statement: str, values: dict[str, Any]) -> Iterator[Iterator[bytes]]:
    """Run a COPY … TO STDOUT on the current connection, and yield an iterator over the chunks of its output.

    The connection must be open, for example because a transaction has begun. Inside the block, the caller must use it
    for nothing else, because another thread runs the statement.

    The driver pushes rows and the WSGI server pulls them, so that thread fills a queue. It waits while the queue is
    full. The iterator raises errors of the driver as Django's database errors. It raises `django.db.OperationalError`
    if no chunk arrives for `SILENCE_SECONDS`.

    If the block is left before the end of the output, the socket of the connection is shut down, and PostgreSQL stops
    the statement at once. A cancel request is not used, because behind a pooler it could cancel the statement of
    another client. The connection is then unusable; Django opens a new one after the end of the transaction.
    """
    driver = connection.connection
    chunks = _ChunkQueue()

    def copy() -> None:
        try:
            # The driver writes single rows. The buffer, written in C, combines them into chunks.
            buffer = io.BufferedWriter(chunks, CHUNK_BYTES)
            with driver.cursor() as cursor:
                # COPY accepts no parameters, so the driver inserts their values into the statement.
                cursor.copy_expert(cursor.mogrify(statement, values), buffer)
            buffer.flush()
        except Exception as error:
            chunks.end(error)
        else:
            chunks.end(None)

    # With a copy of the context variables, the thread belongs to the same request context.
    copier = threading.Thread(target=contextvars.copy_context().run, args=(copy,), name="copy-out", daemon=True)
    copier.start()
    try:
        yield chunks.received()
    finally:
        if not chunks.complete:
            chunks.abandon()
            _shut_down_socket(driver)
        copier.join()


class _ChunkQueue(io.RawIOBase):
    """A bounded queue of chunks: a file for the driver, which writes into it, and an iterator for the consumer."""

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | Exception | None] = queue.Queue(QUEUED_CHUNKS)
        self._abandoned = False
        self.complete = False

    def writable(self) -> bool:
        return True

    def write(self, chunk: Any) -> int:
        if not self._abandoned:
            self._queue.put(bytes(chunk))
        return len(chunk)

    def end(self, error: Exception | None) -> None:
        """Signal the end of the output, and the error that caused it, if any."""
        self._queue.put(error)

    def received(self) -> Iterator[bytes]:
        """The chunks in order. Raises the error of the driver, if any, as Django's database error."""
        while isinstance(item := self._next(), bytes):
            yield item
        self.complete = True
        if item is not None:
            with connection.wrap_database_errors:
                raise item

    def _next(self) -> bytes | Exception | None:
        try:
            return self._queue.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            with connection.wrap_database_errors:
                raise psycopg2.OperationalError(f"the server has sent nothing for {SILENCE_SECONDS} s") from None

    def abandon(self) -> None:
        """Discard all queued and later chunks, so that the writing thread no longer waits."""
        self._abandoned = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()


def _shut_down_socket(driver: Any) -> None:
    """Shut down the socket of a connection to the database.

    The connection itself must not be closed here, because another thread is using it.
    """
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(driver.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
