"""gunicorn as a child of ours: started, waited for, and stopped with us, however we end."""

import ctypes
import http.client
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from cdb import env
from cdb.env import ROOT, ConfigurationError

START_TIMEOUT_SECONDS = 60
# A server that was stopped a moment ago may still hold the port.
PORT_TIMEOUT_SECONDS = 3
PR_SET_PDEATHSIG = 1
LOOK_AFTER_SECONDS = 1


class Server:
    """The web server on 127.0.0.1 and the configured port."""

    def __init__(self) -> None:
        self.port = env.read()["PORT"]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen | None = None

    def check_port_free(self) -> None:
        """Raise `ConfigurationError` if another program has the port."""
        deadline = time.monotonic() + PORT_TIMEOUT_SECONDS
        while True:
            with socket.socket() as probe:
                # As gunicorn does, so that connections of the past that linger in the kernel are no hindrance.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", self.port))
                    return
                except OSError as error:
                    if time.monotonic() > deadline:
                        message = f"port {self.port} is in use; choose another one: make run PORT={self.port + 1}"
                        raise ConfigurationError(message) from error
            time.sleep(0.2)

    def start(self) -> None:
        """Start gunicorn and wait until it is ready. Raises `ConfigurationError` if it does not become so."""
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "gunicorn", "--config", str(ROOT / "deploy" / "gunicorn.conf.py")],
            cwd=ROOT,
            # Out of reach of the terminal's Ctrl-C, which we get too and pass on in order.
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None:
                raise ConfigurationError(f"gunicorn ended with code {self._process.returncode}; see the lines above")
            if time.monotonic() > deadline:
                raise ConfigurationError(f"gunicorn was not ready within {START_TIMEOUT_SECONDS} s")
            time.sleep(0.05)

    def wait(self, look_after: Callable[[], None]) -> int:
        """Wait for gunicorn's end, calling `look_after` every second; returns gunicorn's exit code."""
        while True:
            try:
                return self._process.wait(LOOK_AFTER_SECONDS)
            except subprocess.TimeoutExpired:
                look_after()

    def stop(self) -> None:
        """Let requests in progress end, then stop; asked a second time, stop at once."""
        if self._process is None:
            return
        try:
            self._process.terminate()
            self._process.wait()
        except (KeyboardInterrupt, SystemExit):
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health/ready", headers={"Host": "127.0.0.1"})
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def _end_with_parent() -> None:
    """Ask the kernel (Linux) to tell the child to end when we die without being able to."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
