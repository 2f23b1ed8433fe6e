"""The configuration of nginx: deploy/nginx.conf, filled for the settings and the machine."""

import os
import re
import resource
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from cdb import env
from cdb.env import ConfigurationError
from cdb.serving import layout, templates
from cdb.serving.pools import cores_here, pools
from cdb.serving.program import append_to, find
from cdb_rest.routes import ROUTES, Pool, Route

CONFIGURATION = "nginx.conf"
ERRORS = "nginx-errors.conf"
METRICS = "nginx-metrics.conf"
# The placeholders of the addresses of the instance for lookups.
LOOKUPS = ("LOOKUPS_FIRST", "LOOKUPS_SECOND", "LOOKUPS_THIRD")
# More than the 12,000 requests that one process should be able to hold, each with a connection to gunicorn.
MOST_CONNECTIONS = 32768
# The limit on open files, often 20,000, holds for each of them.
LEAST_PROCESSES = 4
# Files that are neither a client nor gunicorn: logs, the cache, listening sockets.
OTHER_FILES = 128
# So that the service itself, which says more, is the one that refuses a body that is a little too large.
BODY_SLACK_BYTES = 64 * 1024
# Where nginx writes about its workers.
ALERTS = "alerts.log"
LOGS = ("access.log", "error.log", ALERTS)
# Added to the longest time that a lookup may wait for a thread and for the database.
SPARE_SECONDS = 5


def processes(cores: int | None = None) -> int:
    """The number of worker processes of nginx on this machine, or on one with so many cores."""
    return max(LEAST_PROCESSES, cores or cores_here())


def status_url() -> str:
    """The URL at which programs on this machine can read how many connections nginx has."""
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
            "POOLS": "\n        ".join(_locations((route, route.pool) for route in ROUTES if route.pool != Pool.READS)),
            "CACHED": "\n        ".join(_locations((route, "cdb") for route in ROUTES if route.is_cached)),
            "LOOKUPS_TIMEOUT": values["CDB_QUEUE_TIMEOUT_SECONDS"]
            + values["CDB_LOOKUP_TIMEOUT_SECONDS"]
            + SPARE_SECONDS,
        }
        | most_bytes
        | (place or _place()),
    )


def _locations(values: Iterable[tuple[Route, str]]) -> Iterator[str]:
    """The lines of a map by method and path, with the value of each route. nginx takes the first that matches, so that fixed
    paths come before those with a name in them, as in Django's patterns."""
    paths = [(path.rstrip("/"), value) for route, value in values for path in route.paths]
    for path, value in sorted(paths, key=lambda one: "<" in one[0]):
        pattern = re.sub("<.*?>", "[^/]+", path)
        yield f'"~^(GET|HEAD):/api/cdb_rest/{pattern}/?$" {value};'


def trusting(networks: Iterable[str]) -> dict[str, object]:
    """The placeholders that name proxies in front, by their networks."""
    return {
        "TRUSTED_PROXIES": " ".join(f"set_real_ip_from {network};" for network in networks),
        "PROXY_NETWORKS": " ".join(f"{network} 1;" for network in networks),
    }


def make_logs(directory: Path) -> None:
    """Make the logs that do not exist; nginx would make them readable by all."""
    for name in LOGS:
        os.close(append_to(directory / name))


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
        # nginx listens on 127.0.0.1, so a proxy in front of it is on this machine.
        **trusting(["127.0.0.1", "::1"] if env.read()["CDB_BEHIND_PROXY"] else []),
    }


def write_configuration() -> None:
    """Write nginx.conf. Raises `ConfigurationError`, and leaves the old one, if nginx does not accept it."""
    path = layout.directory() / CONFIGURATION
    candidate = path.with_name("candidate.conf")
    templates.write(candidate, configuration())
    make_logs(layout.directory())
    command = [find("nginx"), "-t", "-q", "-p", f"{layout.directory()}/", "-c", candidate.name, "-e", "stderr"]
    tested = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if tested.returncode:
        raise ConfigurationError(f"nginx refuses its configuration: {' '.join(tested.stderr.split())}")
    candidate.replace(path)
