"""The connection of a client: gunicorn's class with the additions that the worker needs."""

from time import monotonic
from typing import Any

from gunicorn.http import RequestParser
from gunicorn.workers.gthread import TConn

from cdb import env
from cdb.worker.client_socket import ClientSocket
from cdb.worker.error_responses import ErrorResponse
from cdb.worker.request_reader import RequestReader

BEHIND_PROXY = env.read()["CDB_BEHIND_PROXY"]


class Connection(TConn):
    """A connection of gunicorn's threaded worker, with a reader of complete requests.

    `opened` and `waits_since`, the time since which its complete request waits, are times of the monotonic
    clock. `refusal` is the error response to send if the worker has refused the request, otherwise None.
    `discarded` is the number of bytes that were read and discarded.
    """

    sock: ClientSocket
    # gunicorn's parsers for other protocols are not used.
    parser: RequestParser

    def __init__(self, cfg: Any, sock: ClientSocket, client: Any, server: Any, reader: RequestReader) -> None:
        super().__init__(cfg, sock, client, server)
        self.reader = reader
        self.opened = self.waits_since = monotonic()
        self.refusal: ErrorResponse | None = None
        self.discarded = 0

    @property
    def address(self) -> str:
        """The client's address: that of the peer, or of X-Forwarded-For with CDB_BEHIND_PROXY or on a Unix socket."""
        own = self.client[0] if isinstance(self.client, tuple) else ""
        return self.reader.head.address if not own or (BEHIND_PROXY and self.reader.head.address) else own

    def read_deadline(self) -> float:
        """The time, on the monotonic clock, at which waiting for a request, or for the rest of one, times out."""
        return self.reader.expires if self.reader.has_begun else self.opened + self.cfg.keepalive

    def init(self) -> None:
        """Create gunicorn's parser, and make it read from `reader`."""
        if not self.initialized:
            super().init()
            self.parser.unreader = self.reader

    def close(self, graceful: bool = False) -> None:
        """Close the connection without waiting for the client, for which the main loop waits if necessary."""
        self.reader.close()
        super().close()
