"""Measure what Squid and Varnish before a cluster save, and check that they are never stale while it is written to."""

import argparse
import itertools
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pandas

from cdb import env
from cdb.processes import directories
from deploy.cluster.local import Cluster
from loadtests import report, wrk
from loadtests.chaos import __main__ as chaos
from loadtests.chaos import cluster
from loadtests.chaos.oracle import STALE, WRONG
from loadtests.chaos.stage import CLUSTER_FAULTS, Place
from loadtests.client import Client, lookup_path
from loadtests.content.expected import insert_body
from loadtests.service import INTERRUPTED, PREFIX, ServiceError, becomes_true, manage, prepare_process

SECONDS, QUICK_SECONDS, CONNECTIONS = 10, 2, 16
# Readers of the same lookup at the same time.
TOGETHER = 8
DURABLE_SECONDS = 90
# Longer than nginx and Squid keep lines of their logs.
LOG_SECONDS = 2
# Of the requests for what never changes, the hosts get less than this share.
MOST_SHARE = 0.01
# Tags whose lookups are revalidated at each use.
REVALIDATED = ("unlocked", "locked")
SCENARIO = "tiny-moderate"
CHANGED = "is-changed"
LAST = (2**31, 0)
# The faults of `make chaos CLUSTER=1` under which clients look for stale responses.
FAULTS = ("none", "primary-power")
EXPLANATION = (
    "hits: requests that the first cache answered without another request. central: those that reached the central Squid, and "
    "its hits. hosts: requests that reached the hosts, and the share of these that needed no body (304): more than half of "
    "those that Squid sends. unlocked: a tag that was written just before."
)


class Logs:
    """The lookups in the access logs of the central Squid and of both hosts since this object was created."""

    def __init__(self, cluster: Cluster) -> None:
        directory = cluster.directory
        hosts = [directory / f"host-{name}" / "serve" / "access.log" for name in cluster.hosts]
        self._sizes = {path: path.stat().st_size for path in (directory / "squid-central" / "access.log", *hosts)}

    def _lines(self) -> list[list[str]]:
        found = []
        for path, size in self._sizes.items():
            with path.open() as file:
                file.seek(size)
                found.append([line for line in file if "/payloadiovs/?" in line])
        return found

    def counts(self) -> tuple[int, int, int]:
        """The requests that reached the central Squid and the hosts, and those of the latter with status 304."""
        lines = None
        while lines != (lines := self._lines()):
            # Each worker of nginx writes its lines after a second at the latest.
            time.sleep(LOG_SECONDS)
        central, *hosts = lines
        return len(central), sum(map(len, hosts)), sum('"status":304' in line for host in hosts for line in host)


def lookups_by_kind(place: Place) -> dict[str, tuple[str, str]]:
    """Lookups of each kind, in tags with the rows of a scenario: the base path and the path."""
    paths, client = {}, Client(place.hosts[0])
    for name, statuses in (("unlocked", []), ("locked", ["locked"]), ("frozen", ["locked", "frozen"])):
        manage(place.commands, "seed_scenario", SCENARIO, "--layout", "random", "--global-tag", f"is-{name}")
        for status in statuses:
            client.call("PUT", f"gt_change_status/is-{name}/{status}")
        paths[name] = "", lookup_path(f"is-{name}", LAST)
    client.call("POST", "pt", {"name": CHANGED})
    path = paths["unlocked"][1]
    revision = client.call("GET", path).headers["cdb-revision"]
    return paths | {"rev=": ("", f"{path}&rev={revision}"), "pinned": (f"/pin/is-unlocked@{revision}", path)}


def measure(place: Place, name: str, port: int, kind: str, lookup: tuple[str, str], seconds: int) -> dict[str, Any]:
    """Send a lookup again and again through the cache at a port: the row of the table."""
    if kind == "unlocked":
        # Its first lookup comes before the second is over in which it changed.
        row = insert_body(f"is-{kind}", CHANGED, 0, (int(time.time()), 0))
        Client(place.hosts[0]).call("POST", "payload-iovs/insert", row)
    address, path = f"http://127.0.0.1:{port}{lookup[0]}", lookup[1]
    client = Client(address, keep_alive=False)
    if kind not in REVALIDATED:
        # Until the standbys have the state, its responses must be revalidated.
        becomes_true(lambda: "immutable" in client.call("GET", path).headers["cache-control"], DURABLE_SECONDS)
    logs = Logs(_cluster(place))
    sent = wrk.measure(address + PREFIX + path, seconds=seconds, connections=CONNECTIONS, lookups=False)
    central, hosts, unmodified = logs.counts()
    requests, through = sent["requests"], {}
    if is_squid := "Squid" in name:
        through = {"central": central, "hits of central, %": 100 * max(0, 1 - hosts / max(central, 1))}
    is_cheap = unmodified > hosts / 2 or not is_squid if kind in REVALIDATED else hosts < requests * MOST_SHARE
    return {
        "kind": kind,
        "through": name,
        "requests": requests,
        "hits, %": 100 * max(0, 1 - (central if is_squid else hosts) / requests),
        **through,
        "hosts": hosts,
        "hosts, %": 100 * hosts / requests,
        "304, %": 100 * unmodified / max(hosts, 1),
        "errors": sent["errors"],
        "good": is_cheap and not sent["errors"],
    }


def _cluster(place: Place) -> Cluster:
    return Cluster(place.service.settings.data / "cluster", place.service.port)


def main(arguments: Sequence[str]) -> int:
    """Measure the load, and inject faults. Returns 1 if the hosts got too much, or if a response was stale or wrong."""
    parser = argparse.ArgumentParser(prog="make cache-test", description=__doc__, epilog=EXPLANATION)
    text = f"measure and inject faults for {QUICK_SECONDS} s each instead of {SECONDS} s"
    parser.add_argument("--quick", action="store_true", help=text)
    options = parser.parse_args(arguments)
    prepare_process()
    seconds = QUICK_SECONDS if options.quick else SECONDS
    directory = (env.read()["CDB_DATA_DIR"] / "caches").resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directories.make_private(directory, None)
    rows: list[dict[str, Any]] = []
    played: list[chaos.Played] = []
    try:
        with cluster.running(directory / "service") as place:
            found = _cluster(place)
            if found.varnish is None:
                raise ServiceError("Varnish is not installed: apt-get install varnish")
            lookups, caches = lookups_by_kind(place), {"site Squid": found.site, "Varnish": found.varnish}
            for (name, port), (kind, lookup) in itertools.product(caches.items(), lookups.items()):
                rows.append(measure(place, name, port, kind, lookup, seconds))
                _say(rows[-1])
            chaos.play_all(
                [fault for fault in CLUSTER_FAULTS if fault.name in FAULTS], place, seconds, played, TOGETHER
            )
    except (ServiceError, env.ConfigurationError) as error:
        sys.stderr.write(f"make cache-test: {error}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        chaos.write(directory / "stale", played)
    figures = pandas.DataFrame(rows)
    is_good = bool(figures["good"].all())
    verdict = f"{int(figures['good'].sum())} of {len(figures)} rows are as they must be"
    page = report.write(
        directory / "load", "Load on the hosts", figures, verdict=verdict, is_good=is_good, texts=[EXPLANATION]
    )
    print(f"\n{figures.to_string(index=False, float_format=report.number, na_rep='')}\n{verdict}.\n{page}")
    # How fast the service recovers is a matter of `make chaos`.
    is_right = not any(fault_played.cells[name] for fault_played in played for name in (STALE, WRONG, "lost"))
    return 0 if is_good and is_right else 1


def _say(row: Mapping[str, Any]) -> None:
    shown = {name: report.number(value) if isinstance(value, float) else value for name, value in row.items()}
    print(", ".join(f"{name} {value}" for name, value in shown.items()), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
