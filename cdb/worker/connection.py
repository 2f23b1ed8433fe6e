"""A client's connection, as gunicorn's threaded worker has it and as our main loop uses it."""

from time import monotonic
from typing import Any

from gunicorn.http import RequestParser
from gunicorn.workers.gthread import TConn

from cdb import env
from cdb.worker.client_socket import ClientSocket
from cdb.worker.request_reader import RequestReader
from cdb.worker.substitutes import Substitute

BEHIND_PROXY = env.read()["CDB_BEHIND_PROXY"]


class Connection(TConn):
    """A connection as gunicorn's threaded worker has it, with a reader of whole requests.

    `waits_since` is when its request was complete. `refusal` is set when the worker has refused the
    request: the response to send. `discarded` counts bytes that were read and thrown away.
    """

    sock: ClientSocket
    # Its other protocols are off.
    parser: RequestParser

    def __init__(self, cfg: Any, sock: ClientSocket, client: Any, server: Any, reader: RequestReader) -> None:
        super().__init__(cfg, sock, client, server)
        self.reader = reader
        self.opened = self.waits_since = monotonic()
        self.refusal: Substitute | None = None
        self.discarded = 0

    @property
    def address(self) -> str:
        """The client's address: behind a proxy, the one that the proxy tells."""
        own = self.client[0] if isinstance(self.client, tuple) else ""
        return self.reader.head.address if not own or (BEHIND_PROXY and self.reader.head.address) else own

    def read_deadline(self) -> float:
        """The time, on the monotonic clock, at which an incomplete request is abandoned."""
        return self.reader.expires if self.reader.has_begun else self.opened + self.cfg.keepalive

    def init(self) -> None:
        """Make gunicorn's parser, which reads from our reader."""
        if not self.initialized:
            super().init()
            self.parser.unreader = self.reader

    def close(self, graceful: bool = False) -> None:
        """Close it at once. Waiting for the client to hang up, as gunicorn would, is the main loop's business."""
        self.reader.close()
        super().close()
