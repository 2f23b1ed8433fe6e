"""The configuration of nginx: deploy/nginx.conf with the values for the settings and the machine."""

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
# The placeholders for the addresses of the gunicorn instance for lookups.
LOOKUPS = ("LOOKUPS_FIRST", "LOOKUPS_SECOND", "LOOKUPS_THIRD")
# One process should be able to handle 12,000 requests, each with two connections: one from the client, one to gunicorn.
MOST_CONNECTIONS = 32768
# The limit on open files, often 20,000, applies to each process, so a few processes are needed even on one core.
LEAST_PROCESSES = 4
# Open files other than connections: logs, the cache, listening sockets.
OTHER_FILES = 128
# nginx accepts bodies that are slightly too large, so that the service refuses them with a more precise error.
BODY_SLACK_BYTES = 64 * 1024
# nginx logs crashes of its workers in this file.
ALERTS = "alerts.log"
LOGS = ("access.log", "error.log", ALERTS)
# Added to the longest time that a lookup may wait for a thread and for the database.
MARGIN_SECONDS = 5


def processes(cores: int | None = None) -> int:
    """The number of nginx worker processes: `cores` (by default those of this machine), but at least `LEAST_PROCESSES`."""
    return max(LEAST_PROCESSES, cores or cores_here())


def status_url() -> str:
    """The URL of nginx's connection statistics, for programs on this machine."""
    return f"http://127.0.0.1:{env.read()['PORT']}/nginx-status"


def configuration(placeholders: dict[str, object] | None = None, threads: int | None = None) -> str:
    """The text of nginx.conf for the settings and this machine.

    `placeholders` are the values for all addresses and paths, by default those of `make serve`. They may also
    override other placeholders. `threads` is the total number of threads that serve lookups, by default that of
    the pool. Raises `KeyError` if a placeholder has no value.
    """
    values = env.read()
    placeholders = {"PROCESSES": processes()} | (placeholders or _default_placeholders())
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if open_files == resource.RLIM_INFINITY:
        open_files = 2 * MOST_CONNECTIONS
    most_bytes = {"MAX_BODY_BYTES": values["CDB_MAX_BODY_BYTES"] + BODY_SLACK_BYTES}
    return templates.fill(
        CONFIGURATION,
        {
            "OPEN_FILES": open_files,
            "WORKER_CONNECTIONS": min(MOST_CONNECTIONS, open_files - OTHER_FILES),
            "KEEPALIVE": max(2, (threads or pools()["lookups"].connections) // int(str(placeholders["PROCESSES"]))),
            "METRICS": templates.fill(METRICS, {}),
            "ERRORS": templates.fill(ERRORS, most_bytes),
            "ALERTS": ALERTS,
            "POOLS": "\n        ".join(_locations((route, route.pool) for route in ROUTES if route.pool != Pool.READS)),
            "CACHED": "\n        ".join(_locations((route, "cdb") for route in _cached_routes())),
            "LOOKUPS_TIMEOUT": values["CDB_QUEUE_TIMEOUT_SECONDS"]
            + values["CDB_LOOKUP_TIMEOUT_SECONDS"]
            + MARGIN_SECONDS,
        }
        | most_bytes
        | placeholders,
    )


def _cached_routes() -> list[Route]:
    """The routes whose responses nginx may store: none if reads need a permission (CDB_ANONYMOUS_READS is off)."""
    return [route for route in ROUTES if route.is_cached and env.read()["CDB_ANONYMOUS_READS"]]


def _locations(values: Iterable[tuple[Route, str]]) -> Iterator[str]:
    """The lines of an nginx map from method and path to the value of each route.

    nginx uses the first line that matches, so fixed paths come before paths with parameters, as in Django's patterns.
    """
    paths = [(path.rstrip("/"), value) for route, value in values for path in route.paths]
    for path, value in sorted(paths, key=lambda one: "<" in one[0]):
        pattern = re.sub("<.*?>", "[^/]+", path)
        yield f'"~^(GET|HEAD):/api/cdb_rest/{pattern}/?$" {value};'


def trusted_proxies(networks: Iterable[str]) -> dict[str, object]:
    """The values of the placeholders for trusted proxies, which are in `networks`.

    `networks` must not be an iterator, because it is read twice.
    """
    return {
        "TRUSTED_PROXIES": " ".join(f"set_real_ip_from {network};" for network in networks),
        "PROXY_NETWORKS": " ".join(f"{network} 1;" for network in networks),
    }


def create_logs(directory: Path) -> None:
    """Create missing log files, because nginx would create them readable by all accounts."""
    for name in LOGS:
        os.close(append_to(directory / name))


def _default_placeholders() -> dict[str, object]:
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
        **trusted_proxies(["127.0.0.1", "::1"] if env.read()["CDB_BEHIND_PROXY"] else []),
    }


def write_configuration() -> None:
    """Write nginx.conf in `layout.directory`, which must exist, and create missing log files.

    Raises `ConfigurationError`, and keeps the old nginx.conf, if nginx rejects the new one or is not installed.
    """
    path = layout.directory() / CONFIGURATION
    candidate = path.with_name("candidate.conf")
    templates.write(candidate, configuration())
    create_logs(layout.directory())
    command = [find("nginx"), "-t", "-q", "-p", f"{layout.directory()}/", "-c", candidate.name, "-e", "stderr"]
    tested = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if tested.returncode:
        raise ConfigurationError(f"nginx rejects its configuration: {' '.join(tested.stderr.split())}")
    candidate.replace(path)
