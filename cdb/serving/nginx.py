"""The configuration of nginx: deploy/nginx.conf with the values for the settings and the machine.

`python -m cdb.serving.nginx` prints it for the addresses of the options, such as those of containers.
"""

import argparse
import grp
import re
import resource
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence

from cdb import env
from cdb.env import ConfigurationError
from cdb.processes import machine, templates
from cdb.serving import layout
from cdb.serving.sizes import other_threads
from cdb_rest.routes import ROUTES, Pin, Pool, Route

CONFIGURATION, ERRORS = "nginx.conf", "nginx-errors.conf"
# Connections of one process: each request has two, one from the client and one to a server.
MOST_CONNECTIONS = 32768
# The limit on open files, often 20,000, applies to each process, so a few processes are needed even on one core.
LEAST_PROCESSES = 4
# Open files other than connections: logs, the cache, listening sockets.
OTHER_FILES = 128
# nginx accepts bodies that are slightly too large, so that the service refuses them with a more precise error.
BODY_SLACK_BYTES = 64 * 1024
# Added to the longest time that a lookup may wait for a thread and for the database.
MARGIN_SECONDS = 5


def processes() -> int:
    """The number of nginx worker processes: the cores of this machine, but at least `LEAST_PROCESSES`."""
    return max(LEAST_PROCESSES, machine.cores())


def of_serve() -> str:
    """The text of nginx.conf for `make serve`."""
    account = layout.nginx_account()
    user = f"user {account.pw_name} {grp.getgrgid(account.pw_gid).gr_name};" if account else ""
    return configuration(
        USER=user,
        LISTEN=f"127.0.0.1:{env.read()['PORT']}",
        LOOKUPS=f"unix:{layout.sockets() / 'lookups.sock'}",
        OTHERS=f"unix:{layout.sockets() / 'others.sock'}",
        CACHE="cache",
        TEMPORARY=layout.temporary(),
        ACCESS_LOG="access.log",
        ERROR_LOG="error.log",
        # nginx listens on 127.0.0.1, so a proxy in front of it is on this machine.
        trusted=["127.0.0.1", "::1"] if env.read()["CDB_BEHIND_PROXY"] else [],
    )


def configuration(*, trusted: Sequence[str], **addresses: object) -> str:
    """The text of nginx.conf for the settings and this machine, with these addresses and paths.

    `trusted` are the networks of trusted proxies. Raises `KeyError` if a placeholder has no value.
    """
    values = env.read()
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if open_files == resource.RLIM_INFINITY:
        open_files = 2 * MOST_CONNECTIONS
    most_bytes = {"MAX_BODY_BYTES": values["CDB_MAX_BODY_BYTES"] + BODY_SLACK_BYTES}
    cached = [route for route in ROUTES if route.is_cached and values["CDB_ANONYMOUS_READS"]]
    return templates.fill(
        CONFIGURATION,
        most_bytes
        | {
            "PROCESSES": processes(),
            "OPEN_FILES": open_files,
            "WORKER_CONNECTIONS": min(MOST_CONNECTIONS, open_files - OTHER_FILES),
            "HEAVY": max(1, other_threads() // 4),
            "ERRORS": templates.fill(ERRORS, most_bytes),
            "POOLS": _map([*_pools(), *(("POST", route, Pool.HEAVY) for route in ROUTES if route.reads_by_post)]),
            "CACHED": _map((("GET|HEAD", route, "cdb") for route in cached), pins=(Pin.STATE, Pin.GLOBAL_TAGS)),
            "LOOKUPS_TIMEOUT": values["CDB_QUEUE_TIMEOUT_SECONDS"]
            + values["CDB_LOOKUP_TIMEOUT_SECONDS"]
            + MARGIN_SECONDS,
            "TRUSTED_PROXIES": " ".join(f"set_real_ip_from {network};" for network in trusted),
            "PROXY_NETWORKS": " ".join(f"{network} 1;" for network in trusted),
            "METRICS_NETWORKS": " ".join(f"{network} 1;" for network in values["CDB_METRICS_NETWORKS"]),
        }
        | addresses,
    )


def _pools() -> Iterator[tuple[str, Route, str]]:
    return (("GET|HEAD", route, route.pool) for route in ROUTES if route.pool != Pool.READS)


def _map(values: Iterable[tuple[str, Route, str]], pins: Collection[Pin] = tuple(Pin)) -> str:
    """The lines of an nginx map from method and path to the value of each route, with `pins` also at pinned addresses.

    nginx uses the first line that matches, so fixed paths come before paths with parameters, as in Django's patterns.
    """
    paths = [
        (methods, "(/pin/[^/]+)?" if route.pin in pins else "", path.rstrip("/"), value)
        for methods, route, value in values
        for path in route.paths
    ]
    lines = []
    for methods, prefix, path, value in sorted(paths, key=lambda one: "<" in one[2]):
        pattern = re.sub("<.*?>", "[^/]+", path)
        lines.append(f'"~^({methods}):{prefix}/api/cdb_rest/{pattern}/?$" {value};')
    return "\n        ".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print nginx.conf for the options. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m cdb.serving.nginx", description=__doc__)
    parser.add_argument("--listen", required=True, help="PORT or HOST:PORT to listen on")
    parser.add_argument("--lookups", required=True, help="address of granian: HOST:PORT or unix:PATH")
    parser.add_argument("--others", required=True, help="address of gunicorn: HOST:PORT or unix:PATH")
    parser.add_argument("--cache", required=True, help="directory of the cache")
    parser.add_argument("--temporary", required=True, help="directory of temporary files, in memory")
    parser.add_argument("--trust", nargs="*", action="extend", default=[], help="networks of trusted proxies")
    options = vars(parser.parse_args(arguments))
    fixed = {"USER": "", "ACCESS_LOG": "/dev/stdout", "ERROR_LOG": "/dev/stderr", "trusted": options.pop("trust")}
    try:
        text = configuration(**fixed, **{name.upper(): value for name, value in options.items()})
    except ConfigurationError as error:
        sys.stderr.write(f"cdb: {error}\n")
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
