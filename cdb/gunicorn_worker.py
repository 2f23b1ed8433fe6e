"""gunicorn's threaded worker, with less handing over between its threads."""

import select
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

# How long a thread waits for the next request of a connection before it gives the connection back.
LINGER_MILLISECONDS = 5


class LingeringWorker(ThreadWorker):
    """A worker whose threads stay with a connection while its client asks again at once, as a proxy does, or a busy job.

    gunicorn's own worker gives each connection back to its main thread after every answer, and gets it again with the
    next request: some ten system calls and two switches of threads, which can cost as much as the lookup's Python.
    A thread stays only while there are threads for all connections, so that nobody waits for its turn meanwhile.
    """

    def handle(self, conn: TConn) -> Any:
        while True:
            keeps = super().handle(conn)
            if keeps is not True or not self.alive or self.nr_conns > self.cfg.threads or not _asks_again(conn):
                return keeps


def _asks_again(conn: TConn) -> bool:
    """Whether another request is there, or comes within a moment."""
    if conn.parser.unreader.buf.getvalue():
        return True
    poller = select.poll()
    poller.register(conn.sock, select.POLLIN)
    return bool(poller.poll(LINGER_MILLISECONDS))
