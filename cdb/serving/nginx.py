"""nginx, which faces the clients."""

import math
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from cdb import child, env
from cdb.env import ConfigurationError
from cdb.serving import layout, templates
from cdb.serving.pools import cores_here, pools
from cdb.serving.program import Program, append_to, find

CONFIGURATION = "nginx.conf"
ERRORS = "nginx-errors.conf"
METRICS = "nginx-metrics.conf"
# The placeholders of the addresses of the instance for lookups.
LOOKUPS = ("LOOKUPS_FIRST", "LOOKUPS_SECOND", "LOOKUPS_THIRD")
# As many as the kernel usually allows: jobs that start together all connect at once.
BACKLOG = 4096
# More than the 12,000 requests that one process should be able to hold, each with a connection to gunicorn.
MOST_CONNECTIONS = 32768
# The limit on open files, often 20,000, holds for each of them.
LEAST_PROCESSES = 4
# Files that are neither a client nor gunicorn: logs, the cache, listening sockets.
OTHER_FILES = 128
# So that the service itself, which says more, is the one that refuses a body that is a little too large.
BODY_SLACK_BYTES = 64 * 1024
# Where nginx writes about its workers, and how it says that one has crashed.
ALERTS = "alerts.log"
CRASHED = b"exited on signal"
LOGS = ("access.log", "error.log", ALERTS)
MOST_ALERT_BYTES = 1024 * 1024
PID_FILE = "nginx.pid"
# A worker that crashes again and again does not make us start nginx more often.
RENEW_SECONDS = 10
# Added to the longest time that a lookup may wait for a thread and for the database.
SPARE_SECONDS = 5


def processes(cores: int | None = None) -> int:
    """How many there are on this machine, or on one of so many cores."""
    return max(LEAST_PROCESSES, cores or cores_here())


def status_url() -> str:
    """Where nginx tells this machine about its connections."""
    return f"http://127.0.0.1:{env.read()['PORT']}/nginx-status"


def configuration(place: dict[str, object] | None = None, threads: int | None = None) -> str:
    """The text of nginx.conf for the settings and this machine.

    `place` has the placeholders that say where nginx and its neighbours are, by default those of `make serve`; it may give others
    a value, too. `threads` are those that answer lookups, by default those of the pool.
    """
    values = env.read()
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if open_files == resource.RLIM_INFINITY:
        open_files = 2 * MOST_CONNECTIONS
    most_bytes = {"MAX_BODY_BYTES": values["CDB_MAX_BODY_BYTES"] + BODY_SLACK_BYTES}
    return templates.fill(
        CONFIGURATION,
        {
            "OPEN_FILES": open_files,
            "WORKER_CONNECTIONS": min(MOST_CONNECTIONS, open_files - OTHER_FILES),
            "PROCESSES": processes(),
            "KEEPALIVE": max(2, (threads or pools()["lookups"].connections) // processes()),
            "METRICS": templates.fill(METRICS, {}),
            "ERRORS": templates.fill(ERRORS, most_bytes),
            "ALERTS": ALERTS,
            "LOOKUPS_TIMEOUT": values["CDB_QUEUE_TIMEOUT_SECONDS"]
            + values["CDB_LOOKUP_TIMEOUT_SECONDS"]
            + SPARE_SECONDS,
        }
        | most_bytes
        | (place or _place()),
    )


def trusting(networks: Iterable[str]) -> dict[str, object]:
    """The placeholders that name proxies in front, by their networks."""
    return {
        "TRUSTED_PROXIES": " ".join(f"set_real_ip_from {network};" for network in networks),
        "PROXY_NETWORKS": " ".join(f"{network} 1;" for network in networks),
    }


def _place() -> dict[str, object]:
    lookups, others = (layout.sockets_of(pool) for pool in pools())
    return {
        "USER": layout.nginx_user(),
        "LISTEN": f"127.0.0.1:{env.read()['PORT']}",
        **{name: f"unix:{path}" for name, path in zip(LOOKUPS, lookups, strict=True)},
        "OTHERS": f"unix:{others[0]}",
        "CACHE": "cache",
        "TEMPORARY": layout.temporary(),
        "ACCESS_LOG": "access.log",
        "ERROR_LOG": "error.log",
        # A proxy in front is on this machine, as nobody else reaches the port.
        **trusting(["127.0.0.1", "::1"] if env.read()["CDB_BEHIND_PROXY"] else []),
    }


def write_configuration() -> None:
    """Write nginx.conf. Raises `ConfigurationError`, and leaves the old one, if nginx does not accept it."""
    path = layout.directory() / CONFIGURATION
    candidate = path.with_name("candidate.conf")
    templates.write(candidate, configuration())
    for name in LOGS:
        # nginx would make them readable by all.
        os.close(append_to(layout.directory() / name))
    command = [find("nginx"), "-t", "-q", "-p", f"{layout.directory()}/", "-c", candidate.name, "-e", "stderr"]
    tested = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if tested.returncode:
        raise ConfigurationError(f"nginx refuses its configuration: {' '.join(tested.stderr.split())}")
    candidate.replace(path)


class Nginx(Program):
    """nginx on a bound socket of ours: it comes and goes, and the port stays.

    It is started in `directory`, where its configuration is; what it says outside of its logs goes to the file `output`,
    or where our own output goes.
    """

    name = "nginx"
    gently = signal.SIGQUIT
    at_once = signal.SIGTERM

    def __init__(self, listener: socket.socket, directory: Path, output: str = "") -> None:
        super().__init__()
        self._listener = listener
        self._port = listener.getsockname()[1]
        self._directory = directory
        self._output = output
        self._running_with = ""
        alerts = directory / ALERTS
        self._alerts_read = alerts.stat().st_size if alerts.exists() else 0
        self._has_crashed = False
        self._renewed = -math.inf

    def start(self) -> None:
        self._running_with = self._configured()
        # nginx takes it for one that listens already, and does not wait.
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        self._make_logs()
        output = append_to(self._directory / self._output) if self._output else None
        try:
            self.process = child.start(
                [find("nginx"), "-p", f"{self._directory}/", "-c", CONFIGURATION, "-e", self._output or "stderr"],
                cwd=self._directory,
                # The way in which one nginx hands its sockets to the next one.
                env={"PATH": os.defpath, "NGINX": f"{self._listener.fileno()};"},
                pass_fds=[self._listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                umask=0o077,
            )
        finally:
            if output is not None:
                os.close(output)

    def wait_until_ready(self) -> None:
        try:
            child.wait_until(self.process, lambda: child.is_ready(self._port), "nginx")
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; see {self._directory / 'error.log'}") from error

    def revive(self) -> bool:
        """Start it again if it has ended, and keep its process id in its file. Returns whether it had to be started."""
        revived = super().revive()
        file = self._directory / PID_FILE
        # One that was replaced removes the file when it ends.
        if self.process and not self._leaving and not file.exists() and not revived:
            file.write_text(f"{self.process.pid}\n")
        return revived

    def renew_after_crash(self) -> bool:
        """Start another nginx, and let this one finish what it has, if one of its workers has crashed.

        The limits in shared memory still count what the worker was doing. Returns whether nginx was started anew.
        """
        self._has_crashed |= CRASHED in self._new_alerts()
        if not self._has_crashed or time.monotonic() < self._renewed + RENEW_SECONDS:
            return False
        self._has_crashed = False
        self._renewed = time.monotonic()
        old = self.process
        # A signal that arrives meanwhile is for both.
        self._leaving.append(old)
        self.start()
        try:
            child.wait_until(self.process, self._has_workers, "nginx")
        except ConfigurationError:
            # The old one goes on, with limits that are too low.
            self._leaving[self._leaving.index(old)], self.process = self.process, old
            self._leaving[-1].kill()
            return False
        old.send_signal(self.gently)
        return True

    def reload(self) -> None:
        """Take over a new configuration; an unchanged one is left alone, because a reload closes idle connections."""
        configured = self._configured()
        if configured != self._running_with:
            self._running_with = configured
            self.send(signal.SIGHUP)

    def close(self) -> None:
        """Give up the port."""
        self._listener.close()

    def _make_logs(self) -> None:
        for name in LOGS:
            os.close(append_to(self._directory / name))

    def _configured(self) -> str:
        return (self._directory / CONFIGURATION).read_text()

    def _new_alerts(self) -> bytes:
        try:
            alerts = (self._directory / ALERTS).open("r+b")
        except FileNotFoundError:
            # Somebody removed it, and nginx goes on writing to a file without a name until it is told to open its logs again.
            self._alerts_read = 0
            self._make_logs()
            self.send(signal.SIGUSR1)
            return b""
        with alerts:
            if alerts.seek(0, os.SEEK_END) < self._alerts_read:
                # Somebody emptied it.
                self._alerts_read = 0
            alerts.seek(self._alerts_read)
            new = alerts.read()
            self._alerts_read += len(new)
            if self._alerts_read > MOST_ALERT_BYTES:
                alerts.truncate(0)
                self._alerts_read = 0
        return new

    def _has_workers(self) -> bool:
        return bool(psutil.Process(self.process.pid).children())
