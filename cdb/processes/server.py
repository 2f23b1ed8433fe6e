"""gunicorn as the child of `make run`: started, waited for, and stopped with us."""

import signal
import subprocess
import sys
from collections.abc import Callable

from cdb import env
from cdb.env import ROOT, ConfigurationError
from cdb.processes import child, machine, metrics_directory

LOOK_AFTER_SECONDS = 1


def settings_of_run() -> dict[str, str]:
    """What `make run` sets unless the operator does: it is the way to try the service out, so it serves the strategies."""
    return {"CDB_STRATEGIES": "true"} if env.read()["CDB_STRATEGIES"] is None else {}


class Server:
    """The web server on 127.0.0.1 and the configured port."""

    def __init__(self) -> None:
        self.port = env.read()["PORT"]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: child.Child | None = None

    def check_port_free(self) -> None:
        """Raise `ConfigurationError` if another program has the port."""
        machine.bind_port(self.port, "make run").close()

    def start(self) -> None:
        """Start gunicorn and wait until it is ready. Raises `ConfigurationError` if it does not become so."""
        metrics_directory.renew()
        self._process = child.start(
            [sys.executable, "-m", "gunicorn", "--config", str(ROOT / "deploy" / "gunicorn.conf.py")],
            cwd=ROOT,
            env=env.for_children(**settings_of_run()),
        )
        try:
            child.wait_until(self._process, lambda: child.is_ready(self.port), "gunicorn")
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; see the lines above") from error

    def wait(self, look_after: Callable[[], None]) -> int:
        """Wait for gunicorn's end, calling `look_after` every second; returns gunicorn's exit code."""
        if self._process is None:
            raise AssertionError("gunicorn was not started")
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
        finally:
            metrics_directory.remove()
