"""COPY … TO STDOUT as pieces of bytes that somebody takes one after the other, at their own pace."""

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

# Size of the pieces, and how many may wait to be taken: what a copy costs in memory, whatever it copies.
PIECE_BYTES = 128 * 1024
PIECES_WAITING = 4
# A server that sends nothing for so long has fallen silent; it sends some piece every few milliseconds.
SILENCE_SECONDS = 30


@contextlib.contextmanager
def copied_out(statement: str, values: dict[str, Any]) -> Iterator[Iterator[bytes]]:
    """Inside the block, what the statement sends, as an iterator over pieces; it runs on the current connection.

    The driver pushes rows, and the server of the response pulls them, so a thread is between the two. It waits while no piece
    is taken. Errors of the driver are raised where a piece is taken, as Django's.

    If the block is left before the end, the connection to the database is closed. PostgreSQL then stops at once. A request to
    cancel could reach the statement of another client behind a pooler. Django opens a new connection when it needs one.
    """
    driver = connection.connection
    pieces = _Pieces()

    def copy() -> None:
        try:
            buffer = io.BufferedWriter(pieces, PIECE_BYTES)
            with driver.cursor() as cursor:
                # COPY takes no parameters, so the driver has to write them in. It hands over row by row, to a method in C.
                cursor.copy_expert(cursor.mogrify(statement, values), buffer)
            buffer.flush()
        except Exception as error:
            pieces.end(error)
        else:
            pieces.end(None)

    # It works for the same request.
    copier = threading.Thread(target=contextvars.copy_context().run, args=(copy,), name="copy-out", daemon=True)
    copier.start()
    try:
        yield pieces.taken()
    finally:
        if not pieces.complete:
            pieces.abandon()
            _hang_up(driver)
        copier.join()


class _Pieces(io.RawIOBase):
    """The file that the driver writes into, and what is taken out of it at the other end."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[bytes | Exception | None] = queue.Queue(PIECES_WAITING)
        self._abandoned = False
        self.complete = False

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        if not self._abandoned:
            self._waiting.put(bytes(piece))
        return len(piece)

    def end(self, error: Exception | None) -> None:
        """Say that nothing more comes, and what is to blame for it, if anything."""
        self._waiting.put(error)

    def taken(self) -> Iterator[bytes]:
        while isinstance(piece := self._next(), bytes):
            yield piece
        self.complete = True
        if piece is not None:
            with connection.wrap_database_errors:
                raise piece

    def _next(self) -> bytes | Exception | None:
        try:
            return self._waiting.get(timeout=SILENCE_SECONDS)
        except queue.Empty:
            with connection.wrap_database_errors:
                raise psycopg2.OperationalError(f"the server has sent nothing for {SILENCE_SECONDS} s") from None

    def abandon(self) -> None:
        """Take no more: whoever writes goes on without waiting, and what is written is lost."""
        self._abandoned = True
        with contextlib.suppress(queue.Empty):
            while True:
                self._waiting.get_nowait()


def _hang_up(driver: Any) -> None:
    """End the conversation with the server below the driver, which another thread is in and which must not be closed under it."""
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(driver.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
