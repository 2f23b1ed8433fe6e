"""gunicorn as a child process of `make run`."""

import signal
import subprocess
import sys
from collections.abc import Callable

from cdb import env
from cdb.env import ROOT, ConfigurationError
from cdb.processes import child, machine, metrics_directory, signals

CHECK_INTERVAL_SECONDS = 1


def settings_of_run() -> dict[str, str]:
    """The environment variables that `make run` sets for gunicorn unless the operator has set them.

    `make run` is for trying the service out on one machine, so it serves the strategies and accepts all writes.
    """
    values = env.read()
    return {name: "true" for name in ("CDB_STRATEGIES", "CDB_OPEN_WRITES") if values[name] is None}


class Server:
    """The web server on 127.0.0.1 and the configured port."""

    def __init__(self) -> None:
        self.port = env.read()["PORT"]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: child.Child | None = None

    def check_port_free(self) -> None:
        """Raise `ConfigurationError` if another program uses the port, or if only root may use it.

        Waits for the port for up to `machine.PORT_TIMEOUT_SECONDS`.
        """
        machine.bind_port(self.port, "make run").close()

    def start(self) -> None:
        """Start gunicorn and wait until it is ready. Call `stop` in any case, also after an exception.

        Raises `ConfigurationError` if gunicorn ends or does not become ready in time.
        """
        metrics_directory.recreate()
        # A signal before the assignment would leave a process for which `stop` does not wait.
        with signals.deferred():
            self._process = child.start(
                [sys.executable, "-m", "gunicorn", "--config", str(ROOT / "deploy" / "gunicorn.conf.py")],
                cwd=ROOT,
                env=env.child_environment(**settings_of_run()),
            )
        try:
            child.wait_until(self._process, lambda: child.is_ready(self.port), "gunicorn")
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; see the lines above") from error

    def wait(self, check_database: Callable[[], None]) -> int:
        """Wait until gunicorn ends, and call `check_database` every second meanwhile. Returns gunicorn's exit code.

        `start` must have been called.
        """
        if self._process is None:
            raise AssertionError("gunicorn was not started")
        while True:
            try:
                return self._process.wait(CHECK_INTERVAL_SECONDS)
            except subprocess.TimeoutExpired:
                check_database()

    def stop(self) -> None:
        """Stop gunicorn when its requests in progress have finished, or at once if a signal arrives meanwhile.

        gunicorn waits for requests for at most its `graceful_timeout`. The metrics are removed. Does nothing if
        gunicorn was not started.
        """
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
