"""What keeps the parts of `make serve` running: it starts them, starts again what ends by itself, replaces and stops them."""

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
from cdb.serving.reloads import Reloads

LOOK_SECONDS = 0.2
# How long requests in progress may take to end when all is stopped.
GRACEFUL_SECONDS = 30
AT_ONCE_SECONDS = 5
# More than a process of nginx needs, which may have all clients to itself.
MOST_FILES = 65536


def write_configuration() -> None:
    """Write what nginx and PgBouncer read. Raises `ConfigurationError` where the settings allow no such file."""
    pgbouncer.write_configuration()
    nginx_configuration.write_configuration()


class Supervisor:
    """nginx, the gunicorn instances and PgBouncer. `say` gets a line about whatever happens by itself.

    Raises `ConfigurationError` if another program has the port.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        _allow_many_connections()
        port = env.read()["PORT"]
        self.url = f"http://127.0.0.1:{port}"
        self._nginx = Nginx(machine.bind_port(port, "make serve"), layout.directory(), "error.log")
        self._gunicorns = [Gunicorn(name) for name in pools()]
        self._pgbouncer = PgBouncer()
        self._told_to_reload = False
        # From here on a signal is noted, also while the programs start.
        signal.signal(signal.SIGHUP, self._note)
        self._reloads = Reloads()

    @property
    def _programs(self) -> list[Program]:
        """In the order in which they are stopped: whoever asks goes before whoever answers."""
        return [self._nginx, *self._gunicorns, self._pgbouncer]

    def start(self) -> None:
        """Start all and wait until they are ready. Raises `ConfigurationError` if one does not become so."""
        metrics_directory.renew()
        for group in ([self._pgbouncer], self._gunicorns, [self._nginx]):
            for program in group:
                program.start()
            for program in group:
                program.wait_until_ready()

    def run(self, look_after: Callable[[], None], prepare: Callable[[], None]) -> None:
        """Look after the programs until a signal raises an exception. `look_after` is called now and then.

        SIGHUP calls `prepare`, which may raise `ConfigurationError`, and puts new processes in place of the old ones.
        """
        while True:
            for program in self._programs:
                if program.revive():
                    self._say(f"{program.name} had ended; it was started again.")
            if self._nginx.renew_after_crash():
                self._say("A worker of nginx crashed; nginx was started anew.")
            look_after()
            if self._told_to_reload:
                self._told_to_reload = False
                self._reload(prepare)
            time.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """Let requests in progress end, then stop; asked a second time, stop at once."""
        try:
            deadline = time.monotonic() + GRACEFUL_SECONDS
            self._nginx.close()
            for group in ([self._nginx], self._gunicorns, [self._pgbouncer]):
                self._end(group, deadline)
        except (KeyboardInterrupt, SystemExit):
            self._say("Stopping at once.")
        finally:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            self._end_at_once()
            for gunicorn in self._gunicorns:
                gunicorn.close()
            metrics_directory.remove()
            self._reloads.close()

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._told_to_reload = True

    def _reload(self, prepare: Callable[[], None]) -> None:
        self._say("Reloading.")
        self._reloads.begin()
        try:
            prepare()
            self._pgbouncer.reload()
            for gunicorn in self._gunicorns:
                gunicorn.replace()
            self._nginx.reload()
        except (ConfigurationError, OSError) as error:
            self._say(f"Not reloaded, the old processes go on: {error}")
            self._reloads.end(" ".join(str(error).split()))
        else:
            self._say("Reloaded: the new processes respond.")
            self._reloads.end()

    @staticmethod
    def _end(group: Sequence[Program], deadline: float) -> None:
        for program in group:
            program.send(program.gently)
        while any(program.running() for program in group) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS / 4)

    def _end_at_once(self) -> None:
        for program in self._programs:
            program.send(program.at_once)
        deadline = time.monotonic() + AT_ONCE_SECONDS
        while any(program.running() for program in self._programs) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS / 4)
        for program in self._programs:
            program.end_orphans()
            program.send(signal.SIGKILL)
            for process in program.running():
                process.wait()


def _allow_many_connections() -> None:
    """Let the programs open as many files as they may."""
    with contextlib.suppress(ValueError, OSError):
        # Root may raise the limit itself, as a rule.
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
