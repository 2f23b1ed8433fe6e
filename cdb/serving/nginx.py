"""The process of nginx, which faces the clients."""

import math
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil

from cdb.env import ConfigurationError
from cdb.processes import child
from cdb.serving.nginx_configuration import ALERTS, CONFIGURATION, make_logs
from cdb.serving.program import Program, append_to, find

# As many as the kernel usually allows: jobs that start together all connect at once.
BACKLOG = 4096
# How nginx reports in ALERTS that a worker has crashed.
CRASHED = b"exited on signal"
MOST_ALERT_BYTES = 1024 * 1024
PID_FILE = "nginx.pid"
# A worker that crashes again and again does not make us start nginx more often.
RENEW_SECONDS = 10


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
        make_logs(self._directory)
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
            child.wait_until(self.started, lambda: child.is_ready(self._port), "nginx")
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
        old = self.started
        # A signal that arrives meanwhile is for both.
        self._leaving.append(old)
        self.start()
        try:
            child.wait_until(self.started, self._has_workers, "nginx")
        except ConfigurationError:
            # The old one goes on, with limits that are too low.
            self._leaving[self._leaving.index(old)], self.process = self.started, old
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

    def _configured(self) -> str:
        return (self._directory / CONFIGURATION).read_text()

    def _new_alerts(self) -> bytes:
        try:
            alerts = (self._directory / ALERTS).open("r+b")
        except FileNotFoundError:
            # The log was removed. nginx keeps writing to the removed file until SIGUSR1 makes it open its logs again.
            self._alerts_read = 0
            make_logs(self._directory)
            self.send(signal.SIGUSR1)
            return b""
        with alerts:
            if alerts.seek(0, os.SEEK_END) < self._alerts_read:
                # The log was truncated.
                self._alerts_read = 0
            alerts.seek(self._alerts_read)
            new = alerts.read()
            self._alerts_read += len(new)
            if self._alerts_read > MOST_ALERT_BYTES:
                alerts.truncate(0)
                self._alerts_read = 0
        return new

    def _has_workers(self) -> bool:
        return bool(psutil.Process(self.started.pid).children())
