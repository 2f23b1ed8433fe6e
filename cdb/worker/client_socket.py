"""A client's socket that writes to a temporary file what the client does not receive at once."""

import errno
import select
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from time import monotonic
from typing import Any

from cdb.worker.spool import PIECE_BYTES, Spool, SpoolFile, SpoolFullError

# A client that takes nothing of its response for so long is gone.
TAKING_SECONDS = 300
# A response's head is sent together with its first piece if that is no larger: one packet, and one system call, instead of two.
TOGETHER_BYTES = 256 * 1024
# Pieces sent at a time by the main loop, which has other clients too.
PIECES_AT_A_TIME = 8


class ClientSocket(socket):
    """The socket of an accepted connection.

    `sendall` returns when the client or a file has all of the data; `unsent` bytes of it are in the file. Between
    `begin_response` and `end_response`, the first call of `sendall` has the response's head, which waits for the next call.
    """

    def __init__(self, accepted: socket, spool: Spool) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        # None: the next data are a response's head.
        self._head: bytes | None = b""
        self._spool = spool
        self._outbox = SpoolFile(spool)
        self._patience = 0.0

    @property
    def unsent(self) -> int:
        """How many bytes wait in the file."""
        return len(self._outbox)

    @property
    def has_unread(self) -> bool:
        """Whether the client has sent more than was read."""
        try:
            return bool(self.recv(1, MSG_PEEK | MSG_DONTWAIT))
        except OSError:
            return False

    def begin_response(self, patience_seconds: float) -> None:
        """Let the thread wait for the client for so long in all, before it writes the rest of a new response to a file."""
        self._patience = patience_seconds
        self._head = None

    def abandon_response(self) -> None:
        """Drop the head of a response that another one takes the place of."""
        self._head = b""

    def end_response(self) -> None:
        """Send the head of a response that has no body. Raises `OSError` if the client has gone."""
        head, self._head = self._head, b""
        if head:
            self.sendall(head)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send the data, or keep them in a file to be sent later.

        Where the spool is full, wait until the client takes them. Raises `OSError` if the client has gone.
        """
        if self._head is None:
            self._head = bytes(data)
            return
        if self._head:
            if len(data) <= TOGETHER_BYTES:
                data, self._head = self._head + data, b""
            else:
                self.end_response()
        rest = memoryview(data)
        if not self._outbox:
            rest = self._send(rest)
            if not rest:
                return
        while rest:
            try:
                self._outbox.append(rest)
            except SpoolFullError:
                rest = self._send_when_possible(rest)
            else:
                rest = rest[:0]
        self.flush()

    def flush(self) -> None:
        """Send as much from the file as the client takes now. Raises `OSError` if the client has gone."""
        for _ in range(PIECES_AT_A_TIME):
            if not self._outbox:
                return
            try:
                self._outbox.drop(self.send(self._outbox.peek(PIECE_BYTES), MSG_DONTWAIT))
            except BlockingIOError:
                return

    def close(self) -> None:
        """Close the connection, and drop what was not sent."""
        self._outbox.close()
        super().close()

    def _send(self, data: memoryview) -> memoryview:
        """Send while the client takes data and the thread has patience; returns the rest."""
        while data:
            try:
                data = data[self.send(data, MSG_DONTWAIT) :]
            except BlockingIOError:
                begin = monotonic()
                if self._patience <= 0 or not self._is_writable(self._patience):
                    return data
                self._patience -= monotonic() - begin
        return data

    def _send_when_possible(self, data: memoryview) -> memoryview:
        """Wait for the client, then send what was kept before, or some of the data; returns the rest."""
        if not self._spool.waiting.acquire(blocking=False):
            raise ConnectionResetError(
                errno.ECONNRESET, "the spool is full, and too many threads wait for their clients"
            )
        try:
            if not self._is_writable(TAKING_SECONDS):
                raise ConnectionResetError(errno.ECONNRESET, f"the client took nothing for {TAKING_SECONDS} s")
        finally:
            self._spool.waiting.release()
        if self.unsent:
            self.flush()
            return data
        try:
            return data[self.send(data, MSG_DONTWAIT) :]
        except BlockingIOError:
            return data

    def _is_writable(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self, select.POLLOUT)
        return bool(poller.poll(1000 * seconds))
