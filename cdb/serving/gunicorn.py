"""A gunicorn instance behind nginx, whose processes can be replaced while its sockets stay open."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from cdb import env
from cdb.env import ROOT, ConfigurationError
from cdb.processes import child, signals
from cdb.serving import layout
from cdb.serving.pgbouncer import replica_urls, url
from cdb.serving.pools import pools
from cdb.serving.program import Program

# The kernel's usual maximum (net.core.somaxconn). Connections wait in this queue while a master is replaced.
BACKLOG = 4096
LOG = "service.log"


def listen(path: Path) -> socket.socket:
    """A listening Unix socket, to which only nginx's account can connect. It replaces an existing file at `path`."""
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
    """The log file of the processes: CDB_LOG_FILE, or by default `service.log` in the directory of `make serve`."""
    return env.read()["CDB_LOG_FILE"] or str(layout.directory() / LOG)


class Gunicorn(Program):
    """The gunicorn masters of a pool: one, or during a replacement also old ones that finish their requests.

    The constructor creates the listening sockets. So it must be called inside `layout.locked`.
    """

    immediate_signal = signal.SIGQUIT

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.name = f"gunicorn ({pool})"
        self._pool = pool
        self._listeners = [listen(path) for path in layout.sockets_of(pool)]
        # Only the newest master listens on this socket, so that it can be probed for readiness.
        self._probe = layout.sockets() / f"{pool}.new"

    def wait_until_ready(self) -> None:
        self._wait_until_ready(self.started)

    def replace(self) -> None:
        """Start a master with the current code and settings. When it is ready, the old one finishes its requests.

        Waits until the new one is ready, but not until the old one ends. Raises `ConfigurationError`, and keeps the old
        one, if the new one does not become ready.
        """
        # The one that is not in use is always among the retiring ones, so that a signal at any time stops both.
        with signals.deferred():
            new = self._start_process()
            self._retiring.append(new)
        try:
            self._wait_until_ready(new)
        except BaseException:
            new.send_signal(self.immediate_signal)
            raise
        old = self.started
        with signals.deferred():
            self._retiring[self._retiring.index(new)], self.process = old, new
        old.terminate()

    def close(self) -> None:
        """Close the listening sockets."""
        for listener in self._listeners:
            listener.close()

    def _start_process(self) -> child.Child:
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
                env=env.child_environment(
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
