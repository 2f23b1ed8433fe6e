"""A connection of the worker on a real pair of sockets, for tests of its parts."""

import socket
from contextlib import contextmanager

from cdb.worker.client_socket import ClientSocket
from cdb.worker.request_reader import RequestReader
from cdb.worker.spool import Spool

MOST_BYTES = 1_000_000


@contextmanager
def connected(most_spooled=1 << 30):
    """A reader on the service's end of a connection, and the client's end."""
    ours, client = socket.socketpair()
    spool = Spool("/tmp", most_spooled, 1)  # noqa: S108
    ours = ClientSocket(ours, spool)
    reader = RequestReader(ours, spool, MOST_BYTES)
    try:
        yield reader, client
    finally:
        reader.close()
        ours.close()
        client.close()
        assert spool._bytes == 0, "the spool was not given back"


def whole(reader):
    """What gunicorn's parser and the application read of a complete request: its head and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += reader.read()
    head, _, rest = data.partition(b"\r\n\r\n")
    reader.unread(rest)
    return head + b"\r\n\r\n", reader.read(reader.length, read_ahead=reader.length) if reader.length else b""
