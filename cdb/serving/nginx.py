"""nginx, which faces the clients."""

import os
import resource
import signal
import socket
import subprocess

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
# What there is to spare for a lookup that has waited for its turn and for the database as long as it may.
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
            "LOOKUPS_TIMEOUT": values["CDB_QUEUE_TIMEOUT_SECONDS"]
            + values["CDB_LOOKUP_TIMEOUT_SECONDS"]
            + SPARE_SECONDS,
        }
        | most_bytes
        | (place or _place()),
    )


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
        "TRUSTED_PROXIES": "",
    }


def _command(*more: str) -> list[str]:
    return [find("nginx"), "-p", f"{layout.directory()}/", "-c", CONFIGURATION, "-e", "error.log", *more]


def write_configuration() -> None:
    """Write nginx.conf. Raises `ConfigurationError`, and leaves the old one, if nginx does not accept it."""
    path = layout.directory() / CONFIGURATION
    candidate = path.with_name("candidate.conf")
    templates.write(candidate, configuration())
    command = [find("nginx"), "-t", "-q", "-p", f"{layout.directory()}/", "-c", candidate.name, "-e", "stderr"]
    tested = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if tested.returncode:
        raise ConfigurationError(f"nginx refuses its configuration: {' '.join(tested.stderr.split())}")
    candidate.replace(path)


class Nginx(Program):
    """nginx on a bound socket of ours: it comes and goes, and the port stays."""

    name = "nginx"
    gently = signal.SIGQUIT
    at_once = signal.SIGTERM

    def __init__(self, listener: socket.socket) -> None:
        super().__init__()
        self._listener = listener
        self._port = listener.getsockname()[1]
        self._running_with = ""

    def start(self) -> None:
        self._running_with = self._configured()
        # nginx takes it for one that listens already, and does not wait.
        self._listener.listen(BACKLOG)
        self._listener.setblocking(False)
        with os.fdopen(append_to(layout.directory() / "error.log")) as log:
            self.process = child.start(
                _command(),
                cwd=layout.directory(),
                # The way in which one nginx hands its sockets to the next one.
                env={"PATH": os.defpath, "NGINX": f"{self._listener.fileno()};"},
                pass_fds=[self._listener.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait_until_ready(self) -> None:
        try:
            child.wait_until(self.process, lambda: child.is_ready(self._port), "nginx")
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}; see {layout.directory() / 'error.log'}") from error

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
        return (layout.directory() / CONFIGURATION).read_text()
