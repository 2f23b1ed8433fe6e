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

    `opened`, when it was accepted, and `waits_since`, the time since which its complete request waits for a thread, are
    times of the monotonic clock. `refusal` is the error response to send if the worker has refused the request,
    otherwise None. `was_queued` says whether its last request was passed to the threads that respond, and not to those
    that refuse. `discarded` is the number of bytes that were read and discarded.
    """

    sock: ClientSocket
    # gunicorn's parsers for other protocols are not used.
    parser: RequestParser

    def __init__(self, cfg: Any, sock: ClientSocket, client: Any, server: Any, reader: RequestReader) -> None:
        super().__init__(cfg, sock, client, server)
        self.reader = reader
        self.opened = self.waits_since = monotonic()
        self.refusal: ErrorResponse | None = None
        self.was_queued = False
        self.discarded = 0

    @property
    def address(self) -> str:
        """The client's address: that of the peer, or of X-Forwarded-For with CDB_BEHIND_PROXY or on a Unix socket.

        On a Unix socket it is empty until the head has arrived, and if the head has no X-Forwarded-For.
        """
        own = self.client[0] if isinstance(self.client, tuple) else ""
        return self.reader.head.address if not own or (BEHIND_PROXY and self.reader.head.address) else own

    def read_deadline(self) -> float:
        """The time, on the monotonic clock, at which waiting for a request, or for the rest of one, times out."""
        return self.reader.expires if self.reader.has_begun else self.opened + self.cfg.keepalive

    def init(self) -> None:
        """Create gunicorn's parser, and make it read from `reader`. Only the first call has an effect."""
        if not self.initialized:
            super().init()
            self.parser.unreader = self.reader

    def close(self, graceful: bool = False) -> None:
        """Close the connection, and discard what was not read or sent, without waiting for the client.

        `graceful` is ignored: the main loop has already waited for the client if necessary.
        """
        self.reader.close()
        super().close()
