"""The supervisor of `make serve`, which starts, restarts, reloads and stops nginx, gunicorn and PgBouncer."""

import contextlib
import resource
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType

from cdb import env
from cdb.env import ConfigurationError
from cdb.processes import machine, metrics_directory
from cdb.serving import layout, nginx_configuration, pgbouncer
from cdb.serving.gunicorn import Gunicorn
from cdb.serving.nginx import Nginx
from cdb.serving.pgbouncer import PgBouncer
from cdb.serving.pools import pools
from cdb.serving.program import Program
from cdb.serving.reloads import ReloadLog

CHECK_INTERVAL_SECONDS = 0.2
# The maximum time for requests in progress when the service is stopped.
GRACEFUL_SECONDS = 30
IMMEDIATE_SECONDS = 5
# More than an nginx process needs, even if it has the connections of all clients.
MOST_FILES = 65536


def write_configuration() -> None:
    """Write the configuration of PgBouncer, then that of nginx.

    Raises `ConfigurationError` if PgBouncer does not support a database URL, or if nginx rejects its configuration. In
    the second case that of PgBouncer has already been written.
    """
    pgbouncer.write_configuration()
    nginx_configuration.write_configuration()


class Supervisor:
    """The supervisor of nginx, the gunicorn instances and PgBouncer. It calls `report` with a line for each event.

    The constructor binds the port, opens the sockets of gunicorn, and installs a handler of SIGHUP. It must be called
    in the main thread and inside `layout.locked`. It raises `ConfigurationError` if another program uses the port.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        _allow_many_connections()
        port = env.read()["PORT"]
        self.url = f"http://127.0.0.1:{port}"
        self._nginx = Nginx(machine.bind_port(port, "make serve"), layout.directory(), "error.log")
        self._gunicorns = [Gunicorn(name) for name in pools()]
        self._pgbouncer = PgBouncer()
        self._reload_requested = False
        # SIGHUP is handled before the PID file exists, so that a reload during the start is not lost.
        signal.signal(signal.SIGHUP, self._request_reload)
        self._reload_log = ReloadLog()

    @property
    def _programs(self) -> list[Program]:
        """The programs in the order in which they are stopped: each one before those that it sends requests to."""
        return [self._nginx, *self._gunicorns, self._pgbouncer]

    def start(self) -> None:
        """Start all programs and wait until they are ready. `write_configuration` must have been called.

        Raises `ConfigurationError` if one fails to start. The caller must then call `stop`.
        """
        metrics_directory.recreate()
        for group in ([self._pgbouncer], self._gunicorns, [self._nginx]):
            for program in group:
                program.start()
            for program in group:
                program.wait_until_ready()

    def run(self, check_database: Callable[[], None], prepare: Callable[[], None]) -> None:
        """Restart programs that end by themselves, until a signal raises an exception.

        `check_database` is called in each round, with a pause of `CHECK_INTERVAL_SECONDS` between rounds. After SIGHUP,
        `prepare` is called, and then new gunicorn processes replace the old ones. If `prepare` raises
        `ConfigurationError` or `OSError`, or new processes do not become ready, that is reported and old processes continue. No
        program is checked or restarted until the reload has ended.
        """
        while True:
            for program in self._programs:
                if program.restart_if_ended():
                    self._report(f"{program.name} had ended; it was restarted.")
            if self._nginx.restart_after_crash():
                self._report("A worker of nginx crashed; nginx was restarted.")
            check_database()
            if self._reload_requested:
                self._reload_requested = False
                self._reload(prepare)
            time.sleep(CHECK_INTERVAL_SECONDS)

    def stop(self) -> None:
        """Stop all programs after the requests in progress have finished, which have at most `GRACEFUL_SECONDS`.

        If another SIGINT or SIGTERM arrives meanwhile, all programs are stopped immediately. At the end, this process
        ignores SIGINT, SIGTERM and SIGHUP.
        """
        try:
            deadline = time.monotonic() + GRACEFUL_SECONDS
            self._nginx.close()
            for group in ([self._nginx], self._gunicorns, [self._pgbouncer]):
                self._end(group, deadline)
        except (KeyboardInterrupt, SystemExit):
            self._report("Stopping immediately.")
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            self._end_at_once()
            for gunicorn in self._gunicorns:
                gunicorn.close()
            metrics_directory.remove()
            self._reload_log.close()

    def _request_reload(self, _number: int, _frame: FrameType | None) -> None:
        self._reload_requested = True

    def _reload(self, prepare: Callable[[], None]) -> None:
        self._report("Reloading.")
        self._reload_log.begin()
        replaced = []
        try:
            prepare()
            self._pgbouncer.reload()
            for gunicorn in self._gunicorns:
                gunicorn.replace()
                replaced.append(gunicorn.name)
            self._nginx.reload()
        except (ConfigurationError, OSError) as error:
            new = f"; new are only those of {' and '.join(replaced)}" if replaced else ""
            reason = f"the old processes continue{new}: {' '.join(str(error).split())}"
            self._report(f"Not reloaded, {reason}")
            self._reload_log.end(reason)
        else:
            self._report("Reloaded: the new processes respond.")
            self._reload_log.end()

    @staticmethod
    def _end(group: Sequence[Program], deadline: float) -> None:
        for program in group:
            program.send(program.graceful_signal)
        while any(program.running() for program in group) and time.monotonic() < deadline:
            time.sleep(CHECK_INTERVAL_SECONDS / 4)

    def _end_at_once(self) -> None:
        for program in self._programs:
            program.send(program.immediate_signal)
        deadline = time.monotonic() + IMMEDIATE_SECONDS
        while any(program.running() for program in self._programs) and time.monotonic() < deadline:
            time.sleep(CHECK_INTERVAL_SECONDS / 4)
        for program in self._programs:
            program.end_orphans()
            program.send(signal.SIGKILL)
            for process in program.running():
                process.wait()


def _allow_many_connections() -> None:
    """Set the limit on open files, which child processes inherit, to `MOST_FILES`.

    If the hard limit is lower and can't be raised, the limit is set to the hard limit.
    """
    with contextlib.suppress(ValueError, OSError):
        # Root can usually raise the hard limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
