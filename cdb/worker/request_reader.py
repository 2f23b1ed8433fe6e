"""A reader that collects a request as it arrives, and passes it to gunicorn's parser when it is complete."""

import contextlib
import re
from socket import MSG_DONTWAIT
from time import monotonic

from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders
from gunicorn.http.unreader import SocketUnreader

from cdb.worker.client_socket import ClientSocket
from cdb.worker.request_head import HEAD_BYTES, RequestHead, escape_target
from cdb.worker.spool import PIECE_BYTES, Spool, SpoolFile

# The head of a request must arrive within HEAD_SECONDS, and each piece of a body within IDLE_SECONDS after
# the previous one.
HEAD_SECONDS = IDLE_SECONDS = 15
# A body must arrive within BODY_SECONDS plus its announced length divided by this rate.
BODY_SECONDS, BODY_BYTES_PER_SECOND = 30, 16 * 1024
# The part of a request beyond this size is stored in a file.
MEMORY_BYTES = 256 * 1024
# Python allocates a buffer of the size that it requests from the kernel, so heads are read in small pieces.
FIRST_BYTES = 16 * 1024

HEAD_END = b"\r\n\r\n"
BARE_LF = re.compile(rb"(?<!\r)\n")
EXPECTS = re.compile(rb"\r\nExpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class RequestReader(SocketUnreader):
    """Collects one request at a time. gunicorn's parser reads from it when the request is complete (`is_complete`).

    `begun` is the time, on the monotonic clock, at which the first bytes of the request arrived, or until then the time
    of `next_request`. Until the head has arrived, `head` is empty and `length`, the announced length of the body in
    bytes, is 0. If the body is chunked or longer than `most_bytes`, `is_unread` is True and the rest of it is not read,
    because the application refuses such a request. The part beyond `MEMORY_BYTES` is stored in a file of `spool`.

    Only one thread at a time may use a reader: the main loop, or the thread that handles the connection.
    """

    def __init__(self, sock: ClientSocket, spool: Spool, most_bytes: int) -> None:
        super().__init__(sock)
        self._most_bytes = most_bytes
        self._file = SpoolFile(spool)
        self.next_request()

    def next_request(self) -> None:
        """Prepare for the next request, whose bytes may already be in the buffer.

        The parser must have read the whole previous request. Otherwise the rest of its body is taken as a request.
        """
        self._arrived = bytearray()
        # The number of bytes of the body that have not arrived yet; None until the head has arrived.
        self._missing: int | None = None
        self._is_ended = self._is_late = self._is_too_long = self.is_complete = self.is_unread = False
        self.begun = self._head_end = self._last = monotonic()
        self.length = 0
        self.head = RequestHead()

    @property
    def has_begun(self) -> bool:
        """Whether any byte of the request has arrived, or the request is complete because the connection was closed."""
        return bool(self._arrived) or self.is_complete or bool(self.buf.getbuffer().nbytes)

    @property
    def is_empty(self) -> bool:
        """Whether the request ended before its first byte. Valid only until the parser begins to read."""
        return self._is_ended and not self.buf.getbuffer().nbytes

    @property
    def is_truncated(self) -> bool:
        """Whether the client closed the connection, or a timeout ended the request, in the middle of the body.

        False if the head is incomplete; gunicorn's parser detects that case.
        """
        return self._is_ended and bool(self._missing)

    @property
    def size(self) -> int:
        """The number of bytes of the body that have arrived; 0 for a body that is not read."""
        return 0 if self.is_unread else self.length - (self._missing or 0)

    @property
    def expires(self) -> float:
        """The time, on the monotonic clock, at which the request times out. Valid only if `has_begun`.

        The head must arrive within `HEAD_SECONDS`. Each piece of the body must arrive within `IDLE_SECONDS`, and the
        whole body within a time that depends on `length`.
        """
        if self._missing is None:
            return self.begun + HEAD_SECONDS
        whole = self._head_end + BODY_SECONDS + self.length / BODY_BYTES_PER_SECOND
        return min(whole, self._last + IDLE_SECONDS)

    def receive(self) -> bool:
        """Read the data that have arrived, without waiting. Returns whether the request is complete.

        The request also counts as complete if the client has closed the connection, if gunicorn will refuse its head,
        or if its body is not read (`is_unread`). Sends "100 Continue" if the client waits for it.

        Raises `SpoolFullError` if the spool has no space for the body; data are then lost, so call `skip_body`. Raises
        another `OSError` if "100 Continue" can't be sent.
        """
        if not self.is_complete and self.buf.getbuffer().nbytes:
            # Bytes that arrived together with the previous request.
            self._store(self.take_buffered())
        while not self.is_complete:
            try:
                # Not more than the rest of the body, so that the next request is not stored in the file.
                data = self.sock.recv(min(PIECE_BYTES, self._missing or FIRST_BYTES), MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                data = b""
            if data:
                self._store(data)
            else:
                self._end()
        return True

    def give_up(self) -> None:
        """Mark the request as complete although a part has not arrived, because of a timeout.

        If the head has arrived, `is_truncated` is then True. Otherwise `chunk` raises `InvalidRequestLine`.
        """
        self._is_late = True
        self._end()

    def skip_body(self) -> None:
        """Mark the request as complete, and do not read the rest of its body (`is_unread`).

        The connection must be closed after the response.
        """
        self.is_unread = True
        self._complete()

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next piece of the part of the request that is stored in a file; b"" at its end.

        gunicorn's `read` calls it after it has returned the part in memory. `size_hint` is the maximum number of bytes.

        Raises `InvalidRequestLine` if the head did not arrive in time, `LimitRequestHeaders` if it is too long.
        """
        if self._file:
            return self._file.read(size_hint or PIECE_BYTES)
        if self._is_late and self._missing is None:
            raise InvalidRequestLine(f"its head did not arrive within {HEAD_SECONDS} s")
        if self._is_too_long:
            raise LimitRequestHeaders("max buffer headers")
        return b""

    def close(self) -> None:
        """Remove the part of the request that is stored in a file, and release its space in the spool."""
        self._file.close()

    def _store(self, data: bytes) -> None:
        self._last = monotonic()
        if self._missing is None:
            if not self._arrived:
                self.begun = self._last
            self._arrived += data
            self._read_head(len(data))
        else:
            self._store_body(data)
            self._missing -= len(data)
        if self._missing == 0:
            self._complete()

    def _read_head(self, new: int) -> None:
        first = len(self._arrived) - new
        end = self._arrived.find(HEAD_END, max(0, first - len(HEAD_END)))
        if end < 0:
            self._is_too_long = len(self._arrived) > HEAD_BYTES
            if self._is_too_long or BARE_LF.search(self._arrived, first):
                # gunicorn refuses such a head, so the rest of it is not needed.
                self._complete()
            return
        end += self._escape_target()
        self.head = RequestHead(bytes(self._arrived[: end + 2]))
        self._head_end = self._last
        self._missing = 0
        if not self.head.has_body:
            return
        self.length = self.head.length
        head_size = end + len(HEAD_END)
        body_size = len(self._arrived) - head_size
        # Removed, because gunicorn would send "100 Continue" when it begins to parse: after the body has
        # arrived, and even for a body that is refused.
        expects = EXPECTS.search(self._arrived, 0, head_size)
        if expects:
            del self._arrived[expects.start() : expects.end()]
        if self.head.is_chunked or self.length > self._most_bytes:
            self.is_unread = True
            return
        self._missing = max(0, self.length - body_size)
        if expects and self._missing and self.head.is_version_1_1:
            # If the send buffer is full, the client has not read its previous responses and does not wait for this one.
            with contextlib.suppress(BlockingIOError):
                self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n", MSG_DONTWAIT)

    def _escape_target(self) -> int:
        """Percent-encode the request target where necessary. Returns the number of bytes that this adds to the head."""
        # HTTP allows an empty line before the request line.
        begin = 2 if self._arrived.startswith(b"\r\n") else 0
        line = bytes(self._arrived[begin : self._arrived.find(b"\r\n", begin)])
        escaped = escape_target(line)
        if escaped is not line:
            self._arrived[begin : begin + len(line)] = escaped
        return len(escaped) - len(line)

    def _store_body(self, data: bytes) -> None:
        if not self._file and len(self._arrived) + len(data) <= MEMORY_BYTES:
            self._arrived += data
        else:
            self._file.append(data)

    def _end(self) -> None:
        self._is_ended = True
        self._complete()

    def _complete(self) -> None:
        self.is_complete = True
        self.unread(bytes(self._arrived))
        self._arrived.clear()
