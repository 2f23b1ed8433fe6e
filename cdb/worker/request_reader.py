"""Reading a request as it arrives, until gunicorn's parser and the application can have all of it."""

import contextlib
import re
from socket import MSG_DONTWAIT
from time import monotonic

from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders
from gunicorn.http.unreader import SocketUnreader

from cdb.worker.client_socket import ClientSocket
from cdb.worker.request_head import HEAD_BYTES, RequestHead, escape_target
from cdb.worker.spool import PIECE_BYTES, Spool, SpoolFile

# A request's head has to arrive within this time, and each part of a body within it of the one before.
HEAD_SECONDS = SILENCE_SECONDS = 15
# A body may take this time, and as much more as this rate gives its announced length.
BODY_SECONDS, BODY_BYTES_PER_SECOND = 30, 16 * 1024
# More of a request than this is kept in a file.
MEMORY_BYTES = 256 * 1024
# Python allocates what it asks the kernel for, so heads are not asked for in large pieces.
FIRST_BYTES = 16 * 1024

HEAD_END = b"\r\n\r\n"
BARE_LF = re.compile(rb"(?<!\r)\n")
EXPECTS = re.compile(rb"\r\nExpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class RequestReader(SocketUnreader):
    """What gunicorn's parser reads from: one request at a time, which has arrived before the parser begins.

    `begun` is when the first of it came, on the monotonic clock. `head` is empty until the head has arrived. `length` is the
    announced length of the body in bytes, 0 until then. A body that is chunked or longer than `most_bytes` is left unread
    (`is_unread`): the application refuses it by the head alone.
    """

    def __init__(self, sock: ClientSocket, spool: Spool, most_bytes: int) -> None:
        super().__init__(sock)
        self._most_bytes = most_bytes
        self._file = SpoolFile(spool)
        self.next_request()

    def next_request(self) -> None:
        """Begin to read another request; what has come of it already is kept."""
        self._arrived = bytearray()
        # Bytes of the body that are still to come, None until the head is there.
        self._missing: int | None = None
        self._is_ended = self._is_late = self._is_too_long = self.is_complete = self.is_unread = False
        self.begun = self._head_end = self._last = monotonic()
        self.length = 0
        self.head = RequestHead()

    @property
    def has_begun(self) -> bool:
        """Whether anything has come of the request."""
        return bool(self._arrived) or self.is_complete or bool(self.buf.getbuffer().nbytes)

    @property
    def is_empty(self) -> bool:
        """Whether the client has gone before it sent anything."""
        return self._is_ended and not self.buf.getbuffer().nbytes

    @property
    def is_cut(self) -> bool:
        """Whether the request ended before its body did."""
        return self._is_ended and bool(self._missing)

    @property
    def size(self) -> int:
        """How many bytes of the body have arrived."""
        return 0 if self.is_unread else self.length - (self._missing or 0)

    @property
    def expires(self) -> float:
        """When the request is given up if nothing more of it comes, on the monotonic clock."""
        if self._missing is None:
            return self.begun + HEAD_SECONDS
        whole = self._head_end + BODY_SECONDS + self.length / BODY_BYTES_PER_SECOND
        return min(whole, self._last + SILENCE_SECONDS)

    def receive(self) -> bool:
        """Read what has come; returns whether that is all: the request is complete, or its client has gone.

        Raises `SpoolFullError`, or another `OSError` if the client has gone while it was told to go on.
        """
        if not self.is_complete and self.buf.getbuffer().nbytes:
            # What came behind the request before.
            self._take(self.take_buffered())
        while not self.is_complete:
            try:
                # Of a body not more than its rest, so that what follows it stays outside of the file.
                data = self.sock.recv(min(PIECE_BYTES, self._missing or FIRST_BYTES), MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                data = b""
            if data:
                self._take(data)
            else:
                self._end()
        return True

    def give_up(self) -> None:
        """Take the request as it is: the rest of it comes too late."""
        self._is_late = True
        self._end()

    def leave_body(self) -> None:
        """Take the request without the rest of its body."""
        self.is_unread = True
        self._complete()

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next piece of the request, for gunicorn.

        Raises `InvalidRequestLine` where the head did not arrive in time, and `LimitRequestHeaders` where it is too long.
        """
        if self._file:
            return self._file.read(size_hint or PIECE_BYTES)
        if self._is_late and self._missing is None:
            raise InvalidRequestLine(f"its head did not arrive within {HEAD_SECONDS} s")
        if self._is_too_long:
            raise LimitRequestHeaders("max buffer headers")
        return b""

    def close(self) -> None:
        """Drop what has arrived."""
        self._file.close()

    def _take(self, data: bytes) -> None:
        self._last = monotonic()
        if self._missing is None:
            if not self._arrived:
                self.begun = self._last
            self._arrived += data
            self._read_head(len(data))
        else:
            self._take_body(data)
            self._missing -= len(data)
        if self._missing == 0:
            self._complete()

    def _read_head(self, new: int) -> None:
        first = len(self._arrived) - new
        end = self._arrived.find(HEAD_END, max(0, first - len(HEAD_END)))
        if end < 0:
            self._is_too_long = len(self._arrived) > HEAD_BYTES
            if self._is_too_long or BARE_LF.search(self._arrived, first):
                # gunicorn refuses these.
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
        # gunicorn would say "Continue" when it begins to parse, which is after the body, and also where a body is refused.
        expects = EXPECTS.search(self._arrived, 0, head_size)
        if expects:
            del self._arrived[expects.start() : expects.end()]
        if self.head.is_chunked or self.length > self._most_bytes:
            self.is_unread = True
            return
        self._missing = max(0, self.length - body_size)
        if expects and self._missing and self.head.is_version_1_1:
            # A client whose buffer is full has not read so much that it waits for this.
            with contextlib.suppress(BlockingIOError):
                self.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n", MSG_DONTWAIT)

    def _escape_target(self) -> int:
        """Percent-encode the request's target where the client did not, and return by how many bytes the head has grown."""
        # HTTP allows an empty line before the request line.
        begin = 2 if self._arrived.startswith(b"\r\n") else 0
        line = bytes(self._arrived[begin : self._arrived.find(b"\r\n", begin)])
        escaped = escape_target(line)
        if escaped is not line:
            self._arrived[begin : begin + len(line)] = escaped
        return len(escaped) - len(line)

    def _take_body(self, data: bytes) -> None:
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
