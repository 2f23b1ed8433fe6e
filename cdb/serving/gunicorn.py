"""A gunicorn instance behind nginx, whose processes can be replaced while its sockets stay."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from cdb import env
from cdb.env import ROOT, ConfigurationError
from cdb.processes import child
from cdb.serving import layout
from cdb.serving.pgbouncer import replica_urls, url
from cdb.serving.pools import pools
from cdb.serving.program import Program

# As many as the kernel usually allows (net.core.somaxconn): whoever comes while masters are replaced waits in this queue.
BACKLOG = 4096
LOG = "service.log"


def listen(path: Path) -> socket.socket:
    """A listening Unix socket, which nginx's account may connect to and no other one."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.fspath(path))
    path.chmod(0o600)
    account = layout.nginx_account()
    if account:
        os.chown(path, account.pw_uid, account.pw_gid)
    listener.listen(BACKLOG)
    return listener


def log_file() -> str:
    """Where the processes write their records."""
    return env.read()["CDB_LOG_FILE"] or str(layout.directory() / LOG)


class Gunicorn(Program):
    """The masters of a pool: one, or while it is replaced, the new one and those that finish what they have."""

    at_once = signal.SIGQUIT

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.name = f"gunicorn ({pool})"
        self._pool = pool
        self._listeners = [listen(path) for path in layout.sockets_of(pool)]
        # The way to the newest master alone, to ask whether it is ready.
        self._probe = layout.sockets() / f"{pool}.new"

    def start(self) -> None:
        self.process = self._launch()

    def wait_until_ready(self) -> None:
        self._wait_until_ready(self.started)

    def replace(self) -> None:
        """Start a master of the present code, and when it is ready, let the old one finish and end.

        Raises `ConfigurationError`, and leaves the old one in place, if the new one does not become ready.
        """
        new = self._launch()
        try:
            self._wait_until_ready(new)
        except BaseException:
            new.send_signal(self.at_once)
            self._leaving.append(new)
            raise
        self._leaving.append(self.started)
        self.started.terminate()
        self.process = new

    def close(self) -> None:
        """Give up the sockets."""
        for listener in self._listeners:
            listener.close()

    def _launch(self) -> child.Child:
        probe = listen(self._probe)
        descriptors = [listener.fileno() for listener in (*self._listeners, probe)]
        pool = pools()[self._pool]
        try:
            return child.start(
                [
                    sys.executable,
                    "-m",
                    "cdb.serving.gunicorn_master",
                    self._pool,
                    "--descriptors",
                    *map(str, descriptors),
                ],
                cwd=ROOT,
                env=env.for_children(
                    DATABASE_URL=url(pool),
                    DATABASE_REPLICA_URLS=",".join(replica_urls(pool)),
                    CDB_LOG_FILE=log_file(),
                ),
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
            )
        finally:
            probe.close()

    def _wait_until_ready(self, process: child.Child) -> None:
        try:
            child.wait_until(process, lambda: child.is_ready(self._probe), self.name)
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; see the lines above") from error
        finally:
            self._probe.unlink(missing_ok=True)
