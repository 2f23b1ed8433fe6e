"""A socket of a client that buffers in a temporary file the data that the client does not receive immediately."""

import errno
import select
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from time import monotonic
from typing import Any

from cdb.worker.spool import PIECE_BYTES, Spool, SpoolFile, SpoolFullError

# The connection is closed if its client receives nothing for this time.
STALL_TIMEOUT_SECONDS = 300
# The head of a response is sent together with the first piece of its body if that is not larger than this:
# one packet and one system call instead of two.
COALESCE_BYTES = 256 * 1024
# The number of pieces that the main loop sends to a client before it serves other clients.
PIECES_AT_A_TIME = 8


class ClientSocket(socket):
    """The socket of an accepted connection. It takes over the descriptor of `accepted`, which can't be used any more.

    `sendall` returns when all of the data are sent or stored in a file; `unsent` is the number of bytes in
    the file. After `begin_response`, the first call of `sendall` has the head of the response, which is sent
    with the next call or by `end_response`.

    Only one thread at a time may use a socket: the main loop, or the thread that handles the connection.
    """

    def __init__(self, accepted: socket, spool: Spool) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        # None means that the next data are the head of a response.
        self._head: bytes | None = b""
        self._spool = spool
        self._unsent_file = SpoolFile(spool)
        self._wait_seconds = 0.0

    @property
    def unsent(self) -> int:
        """The number of bytes in the file."""
        return len(self._unsent_file)

    @property
    def has_unread(self) -> bool:
        """Whether the client has sent data that were not read."""
        try:
            return bool(self.recv(1, MSG_PEEK | MSG_DONTWAIT))
        except OSError:
            return False

    def begin_response(self, wait_seconds: float) -> None:
        """Begin a response. `sendall` waits for the client, at most `wait_seconds` for all of its calls in total.

        After that it stores the rest in a file.
        """
        self._wait_seconds = wait_seconds
        self._head = None

    def abandon_response(self) -> None:
        """Discard the unsent head of a response that is replaced by another one."""
        self._head = b""

    def end_response(self) -> None:
        """End a response: send its head if there was no body to send it with. Raises `OSError` as `sendall` does."""
        head, self._head = self._head, b""
        if head:
            self.sendall(head)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send the data, or store them in a file, from which they are sent later.

        Waits for the client as `begin_response` permits, and longer if the spool is full. Raises `OSError` if the
        client has disconnected, receives nothing for `STALL_TIMEOUT_SECONDS`, or if too many threads wait for their
        clients. `flags` are ignored.
        """
        if self._head is None:
            self._head = bytes(data)
            return
        if self._head:
            if len(data) <= COALESCE_BYTES:
                data, self._head = self._head + data, b""
            else:
                self.end_response()
        rest = memoryview(data)
        if not self._unsent_file:
            rest = self._send(rest)
            if not rest:
                return
        while rest:
            try:
                self._unsent_file.append(rest)
            except SpoolFullError:
                rest = self._send_when_possible(rest)
            else:
                rest = rest[:0]
        self.flush()

    def flush(self) -> None:
        """Send as much from the file as possible without waiting, at most `PIECES_AT_A_TIME` pieces.

        Raises `OSError` if the client has disconnected.
        """
        for _ in range(PIECES_AT_A_TIME):
            if not self._unsent_file:
                return
            try:
                self._unsent_file.drop(self.send(self._unsent_file.peek(PIECE_BYTES), MSG_DONTWAIT))
            except BlockingIOError:
                return

    def close(self) -> None:
        """Close the connection and discard unsent data."""
        self._unsent_file.close()
        super().close()

    def _send(self, data: memoryview) -> memoryview:
        """Send data, and wait for the client within the time that `begin_response` has set. Returns the unsent rest."""
        while data:
            try:
                data = data[self.send(data, MSG_DONTWAIT) :]
            except BlockingIOError:
                if self._wait_seconds <= 0:
                    return data
                begin = monotonic()
                is_writable = self._is_writable(self._wait_seconds)
                self._wait_seconds -= monotonic() - begin
                if not is_writable:
                    return data
        return data

    def _send_when_possible(self, data: memoryview) -> memoryview:
        """Wait for the client, then send from the file or, if that is empty, from `data`. Returns the rest of `data`.

        Raises `OSError` as `sendall` does.
        """
        if not self._spool.waiting.acquire(blocking=False):
            raise ConnectionResetError(
                errno.ECONNRESET, "the spool is full, and too many threads wait for their clients"
            )
        try:
            if not self._is_writable(STALL_TIMEOUT_SECONDS):
                raise ConnectionResetError(
                    errno.ECONNRESET, f"the client received nothing for {STALL_TIMEOUT_SECONDS} s"
                )
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
