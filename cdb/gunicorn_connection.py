"""A client's connection that never keeps a thread waiting for the network.

The worker's main loop reads a request until all of it is there (`RequestReader`). What the client does not take of its
response at once goes to a temporary file, from which the main loop sends it (`ClientSocket`).
"""

import errno
import re
import select
from socket import MSG_DONTWAIT, MSG_PEEK, socket
from time import monotonic
from typing import Any

from gunicorn.http.errors import InvalidRequestLine
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn

from cdb import env
from cdb.spool import Spool, SpoolFile, SpoolFullError

# How long a thread waits in all for the client of one response before it uses a file instead.
PATIENCE_SECONDS = 1.0
# A client that takes nothing of its response for so long is gone.
TAKING_SECONDS = 300
# A request's head has to arrive within this time, and each part of a body within it of the one before.
HEAD_SECONDS = SILENCE_SECONDS = 15
# A body may take this time, and as much more as this rate gives its announced length.
BODY_SECONDS, BODY_BYTES_PER_SECOND = 30, 16 * 1024
# More of a head than gunicorn would read: 100 lines of 8190 bytes.
HEAD_BYTES = 100 * 8192
# More of a request than this is kept in a file.
MEMORY_BYTES = 256 * 1024
PIECE_BYTES = 256 * 1024
# Python allocates what it asks the kernel for, so heads are not asked for in large pieces.
FIRST_BYTES = 16 * 1024
# Pieces sent at a time by the main loop, which has other clients too.
PIECES_AT_A_TIME = 8

BEHIND_PROXY = env.read()["CDB_BEHIND_PROXY"]
HEAD_END = b"\r\n\r\n"
BARE_LF = re.compile(rb"(?<!\r)\n")
# Of heads in lower case.
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
LENGTH_FIELD, CHUNKED_FIELD = b"\r\ncontent-length:", b"\r\ntransfer-encoding:"
FORWARDED_FOR = re.compile(rb"\r\nx-forwarded-for:[ \t]*([^\r\n]*)\r\n")
# Of heads as they are.
EXPECTS = re.compile(rb"\r\nExpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)


class ClientSocket(socket):
    """The socket of an accepted connection.

    `sendall` returns when the client or a file has all of the data; `unsent` bytes of it are in the file.
    """

    def __init__(self, accepted: socket, spool: Spool) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._spool = spool
        self._outbox: SpoolFile | None = None
        self._patience = PATIENCE_SECONDS

    @property
    def unsent(self) -> int:
        """How many bytes wait in the file."""
        return len(self._outbox) if self._outbox else 0

    @property
    def has_unread(self) -> bool:
        """Whether the client has sent more than was read."""
        try:
            return bool(self.recv(1, MSG_PEEK | MSG_DONTWAIT))
        except OSError:
            return False

    def begin_response(self) -> None:
        """Let the thread wait for the client again, for a new response."""
        self._patience = PATIENCE_SECONDS

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send the data, or keep them in a file to be sent later.

        Where the spool is full, wait until the client takes them. Raises `OSError` if the client has gone.
        """
        rest = memoryview(data)
        if self._outbox is None:
            rest = self._send(rest)
            if not rest:
                return
        while rest:
            try:
                self._keep(rest)
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
            if not self._outbox:
                self._discard()

    def close(self) -> None:
        """Close the connection, and drop what was not sent."""
        self._discard()
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

    def _keep(self, data: memoryview) -> None:
        if self._outbox is None:
            self._outbox = SpoolFile(self._spool)
        self._outbox.append(data)

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

    def _discard(self) -> None:
        if self._outbox is not None:
            self._outbox.close()
            self._outbox = None


class RequestReader(SocketUnreader):
    """What gunicorn's parser reads from: one request at a time, which has arrived before the parser begins.

    `begun` is when the first of it came, on the monotonic clock. `length` is the announced length of the body in bytes,
    known with the head. A body that is chunked or longer than `most_bytes` is left unread (`is_unread`): the application
    refuses it by the head alone.
    """

    def __init__(self, sock: ClientSocket, spool: Spool, most_bytes: int) -> None:
        super().__init__(sock)
        self._spool = spool
        self._most_bytes = most_bytes
        self._file: SpoolFile | None = None
        self.next_request()

    def next_request(self) -> None:
        """Begin to read another request; what has come of it already is kept."""
        self._arrived = bytearray()
        # Bytes of the body that are still to come, None until the head is there.
        self._missing: int | None = None
        self._is_ended = self._is_late = self.is_complete = self.is_unread = False
        self.begun = self._head_end = self._last = monotonic()
        self.length = 0
        # In lower case.
        self._head = b""

    @property
    def address(self) -> str:
        """The client's address as the proxy tells it, empty without one."""
        found = FORWARDED_FOR.search(self._head)
        return found[1].decode("latin-1") if found else ""

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

        Raises `SpoolFullError`.
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

        Raises `InvalidRequestLine` where the head did not arrive in time.
        """
        if self._file:
            return self._file.read(size_hint or PIECE_BYTES)
        if self._is_late and self._missing is None:
            raise InvalidRequestLine(f"its head did not arrive within {HEAD_SECONDS} s")
        return b""

    def close(self) -> None:
        """Drop what has arrived."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take(self, data: bytes) -> None:
        self._last = monotonic()
        if self._missing is None:
            if not self._arrived:
                self.begun = self._last
            self._arrived += data
            self._read_head(len(data))
        else:
            self._take_body(data)
        if self._missing == 0:
            self._complete()

    def _read_head(self, new: int) -> None:
        first = len(self._arrived) - new
        end = self._arrived.find(HEAD_END, max(0, first - len(HEAD_END)))
        if end < 0:
            if len(self._arrived) > HEAD_BYTES or BARE_LF.search(self._arrived, first):
                # gunicorn refuses these without reading on.
                self._complete()
            return
        self._head = bytes(self._arrived[: end + 2]).lower()
        self._head_end = self._last
        self._missing = 0
        if LENGTH_FIELD not in self._head and CHUNKED_FIELD not in self._head:
            return
        length = LENGTH.search(self._head)
        self.length = int(length[1]) if length else 0
        if CHUNKED_FIELD in self._head or self.length > self._most_bytes:
            self.is_unread = True
            return
        self._missing = max(0, self.length - (len(self._arrived) - end - len(HEAD_END)))
        expects = EXPECTS.search(self._arrived, 0, end + len(HEAD_END)) if self._missing else None
        if expects:
            # gunicorn would do so when it begins to parse, which is after the body.
            del self._arrived[expects.start() : expects.end()]
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _take_body(self, data: bytes) -> None:
        if self._file is None and len(self._arrived) + len(data) <= MEMORY_BYTES:
            self._arrived += data
        else:
            self._file = self._file or SpoolFile(self._spool)
            self._file.append(data)
        self._missing -= len(data)

    def _end(self) -> None:
        self._is_ended = True
        self._complete()

    def _complete(self) -> None:
        self.is_complete = True
        self.unread(bytes(self._arrived))
        self._arrived.clear()


class Connection(TConn):
    """A connection as gunicorn's threaded worker has it, with a reader of whole requests.

    `waits_since` is when its request was complete. `is_refused` says that there is no room for the request. `taken` is when
    the client took something of its response last, and `discarded` how much was read and thrown away. The others are what
    the worker's limits count the request as.
    """

    def __init__(self, cfg: Any, sock: ClientSocket, client: Any, server: Any, reader: RequestReader) -> None:
        super().__init__(cfg, sock, client, server)
        self.reader = reader
        self.opened = self.waits_since = self.taken = monotonic()
        self.is_refused = False
        self.discarded = self.admitted_bytes = 0
        self.queued_as: str | None = None

    @property
    def address(self) -> str:
        """The client's address: behind a proxy, the one that the proxy tells."""
        own = self.client[0] if isinstance(self.client, tuple) else ""
        return self.reader.address if not own or (BEHIND_PROXY and self.reader.address) else own

    def read_deadline(self) -> float:
        """When a request is given up that does not go on, on the monotonic clock."""
        return self.reader.expires if self.reader.has_begun else self.opened + self.cfg.keepalive

    def take_deadline(self) -> float:
        """When a client that takes nothing of its response is given up."""
        return self.taken + TAKING_SECONDS

    def init(self) -> None:
        """Make gunicorn's parser, which reads from our reader."""
        if not self.initialized:
            super().init()
            self.parser.unreader = self.reader

    def close(self, graceful: bool = False) -> None:
        """Close it at once. Waiting for the client to hang up, as gunicorn would, is the main loop's business."""
        self.reader.close()
        super().close()
