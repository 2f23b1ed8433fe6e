"""A client's connection, as gunicorn's threaded worker has it and as our main loop uses it."""

from time import monotonic
from typing import Any

from gunicorn.workers.gthread import TConn

from cdb import env
from cdb.worker.client_socket import TAKING_SECONDS, ClientSocket
from cdb.worker.request_reader import RequestReader

BEHIND_PROXY = env.read()["CDB_BEHIND_PROXY"]


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
