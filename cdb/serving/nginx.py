"""The process of nginx, to which clients connect."""

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
from cdb.serving.nginx_configuration import ALERTS, CONFIGURATION, create_logs
from cdb.serving.program import Program, append_to, find

# The kernel's usual maximum, because jobs that start together all connect at the same time.
BACKLOG = 4096
# A part of the line in ALERTS with which nginx reports that a worker has crashed.
CRASHED = b"exited on signal"
MOST_ALERT_BYTES = 1024 * 1024
PID_FILE = "nginx.pid"
# The minimum time between two restarts because of crashed workers.
RESTART_INTERVAL_SECONDS = 10


class Nginx(Program):
    """nginx on a socket that this process has bound, so that the port stays open while nginx is restarted.

    `directory` has the configuration and is the working directory. Output other than logs is appended to the
    file `output` in that directory or, if `output` is empty, written to the output of this process.
    """

    name = "nginx"
    graceful_signal = signal.SIGQUIT
    immediate_signal = signal.SIGTERM

    def __init__(self, listener: socket.socket, directory: Path, output: str = "") -> None:
        super().__init__()
        self._listener = listener
        self._port = listener.getsockname()[1]
        self._directory = directory
        self._output = output
        self._loaded_configuration = ""
        alerts = directory / ALERTS
        self._alerts_read = alerts.stat().st_size if alerts.exists() else 0
        self._has_crashed = False
        self._restarted = -math.inf

    def _start_process(self) -> child.Child:
        self._loaded_configuration = self._read_configuration()
        # nginx expects an inherited socket to listen already and to be non-blocking.
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        create_logs(self._directory)
        output = append_to(self._directory / self._output) if self._output else None
        try:
            return child.start(
                [find("nginx"), "-p", f"{self._directory}/", "-c", CONFIGURATION, "-e", self._output or "stderr"],
                cwd=self._directory,
                # The mechanism by which nginx passes its sockets to a new nginx during an upgrade.
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

    def restart_if_ended(self) -> bool:
        """Restart nginx if it has ended, and restore a missing PID file. Returns whether nginx was restarted."""
        restarted = super().restart_if_ended()
        file = self._directory / PID_FILE
        # A replaced nginx removes the PID file when it ends.
        if self.process and not self._retiring and not file.exists() and not restarted:
            file.write_text(f"{self.process.pid}\n")
        return restarted

    def restart_after_crash(self) -> bool:
        """If a worker of nginx has crashed, start another nginx, and let the old one finish its requests.

        The connection limits in shared memory would count the requests of the crashed worker forever. Returns whether
        nginx was restarted. That is at most once in `RESTART_INTERVAL_SECONDS`; after a crash within this interval, a
        later call restarts it. If the new nginx does not start, the old one continues.
        """
        self._has_crashed |= CRASHED in self._new_alerts()
        if not self._has_crashed or time.monotonic() < self._restarted + RESTART_INTERVAL_SECONDS:
            return False
        self._has_crashed = False
        self._restarted = time.monotonic()
        old = self.started
        # Registered before the start, so that a signal that arrives meanwhile is sent to both.
        self._retiring.append(old)
        self.start()
        try:
            child.wait_until(self.started, self._has_workers, "nginx")
        except ConfigurationError:
            # The old nginx continues, with limits that are too low.
            self._retiring[self._retiring.index(old)], self.process = self.started, old
            self._retiring[-1].kill()
            return False
        old.send_signal(self.graceful_signal)
        return True

    def reload(self) -> None:
        """Load the configuration if it has changed. A needless reload would close idle connections."""
        configured = self._read_configuration()
        if configured != self._loaded_configuration:
            self._loaded_configuration = configured
            self.send(signal.SIGHUP)

    def close(self) -> None:
        """Close the listening socket."""
        self._listener.close()

    def _read_configuration(self) -> str:
        return (self._directory / CONFIGURATION).read_text()

    def _new_alerts(self) -> bytes:
        try:
            alerts = (self._directory / ALERTS).open("r+b")
        except FileNotFoundError:
            # The log was removed. nginx keeps writing to the removed file until SIGUSR1 makes it open its logs again.
            self._alerts_read = 0
            create_logs(self._directory)
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
