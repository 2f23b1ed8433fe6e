"""Read through Squid and Varnish while a cluster is written to, and count what is stale and what reaches the hosts."""

import argparse
import contextlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas
import psutil

from cdb import env
from cdb.processes import directories, templates
from deploy.cluster import local
from loadtests import report, usage, wrk
from loadtests.chaos.log import ANSWERED, DROPPED, WRONG
from loadtests.client import Client, DroppedError, Response, lookup_path
from loadtests.content.expected import insert_body, row_of
from loadtests.service import (
    INTERRUPTED,
    PREFIX,
    ServiceError,
    Settings,
    becomes_true,
    frozen,
    kill,
    manage,
    prepare_process,
    python,
    run_to_end,
    running,
    started,
)

STALE, UNAVAILABLE = "stale", "unavailable"
# What a cache or a host says when the next program does not respond.
OUTAGES = (502, 503, 504)
START_SECONDS, TIMEOUT_SECONDS, RETRY_SECONDS = 120, 90, 0.1
# Those of the cluster; that of Varnish follows.
PORTS = 50
SECONDS, QUICK_SECONDS, CONNECTIONS = 10, 2, 16
READERS, WRITERS = 8, 2
# Readers turn to the next address after this time.
PLACE_SECONDS = 0.2
# Longer than nginx and Squid keep lines of their logs.
LOG_SECONDS = 2
# Of the requests for what never changes, the hosts get less than this share.
MOST_SHARE = 0.01
# Tags whose lookups are revalidated at each use.
ASKED = ("unlocked", "locked")
SCENARIO, PEAK_SCENARIO = "tiny-moderate", "moderate"
CHANGED = "is-changed"
LAST = (2**31, 0)
EXPLANATION = (
    "Clients read through each address while others write through all of them. stale: older than a write that was "
    "acknowledged, or than a response that was complete, before the request was sent. unavailable: status 502, 503 or 504. "
    "With collapsed forwarding on, stale responses are counted and do not make the test fail."
)
LOAD = (
    "hits: requests that the first cache answered without another. central: those that reached the central Squid, and its "
    "hits. hosts: requests that reached the hosts, and the share of these that needed no body (304): more than half of those "
    "that Squid sends. unlocked: a tag that was written just before. peak: median of three "
    "rounds; success in percent, times in ms."
)


@dataclass
class Tag:
    """A global tag with one writer: all its states in their order, and the number of the last acknowledged one.

    A state is the number of all rows that the tag has, the number of the last one, and the status; or None for a tag that
    does not exist. `revision` is the newest in any response so far.
    """

    name: str
    states: list[tuple[int, int, str] | None] = field(default_factory=lambda: [None])
    acknowledged: int = 0
    revision: int = 0

    def row(self, number: int) -> dict[str, Any]:
        """The row as the body of an insert."""
        return insert_body(self.name, self.name, number, (number, 0))

    def judge(self, oldest: int, least: int, response: Response, *, light: bool) -> str:
        """The outcome of a response, if `oldest` was acknowledged and `least` was the newest revision before its request."""
        if response.status in OUTAGES:
            return UNAVAILABLE
        content, is_there = response.json, response.status == 200
        if light and is_there:
            content = (content["payload_iov_count"], content["status"])
        places = [place for place, state in enumerate(self.states) if is_there and content == self._shown(state, light)]
        if response.status == 404:
            places = [place for place, state in enumerate(self.states) if state is None]
        if not places:
            return WRONG
        revision = int(response.headers.get("cdb-revision", least))
        self.revision = max(self.revision, revision)
        return STALE if places[-1] < oldest or revision < least else ANSWERED

    def _shown(self, state: tuple[int, int, str] | None, light: bool) -> Any:
        if state is None:
            return None
        count, last, status = state
        return (count, status) if light else [row_of(self.row(last))] if count else []


class Stage:
    """A running cluster with Varnish, and the tags of the present phase."""

    def __init__(self, cluster: local.Cluster, settings: Settings, root: psutil.Process, varnish: int) -> None:
        self.cluster, self.settings, self.root = cluster, settings, root
        hosts = {f"host {name}": port for name, port in cluster.hosts.items()}
        self.ports = {"site Squid": cluster.site, "central Squid": cluster.central, "Varnish": varnish} | hosts
        self.begin()

    def begin(self) -> None:
        """Begin a phase, without tags."""
        self.tags: list[Tag] = []
        self.over = threading.Event()
        self.outcomes: Counter[tuple[str, str]] = Counter()

    def url(self, place: str) -> str:
        """The URL of a cache or host."""
        return f"http://127.0.0.1:{self.ports[place]}"

    def write(self, method: str, path: str, body: Any = None) -> None:
        """Write through one address after the other, with an idempotency key, until it is acknowledged."""
        key = str(uuid.uuid4())
        for place in itertools.cycle(random.sample(list(self.ports), len(self.ports))):
            try:
                client = Client(self.url(place), keep_alive=False, timeout=TIMEOUT_SECONDS)
                status = client.request(method, path, body, **{"Idempotency-Key": key}).status
                outcome = ANSWERED if status < 300 else UNAVAILABLE if status in OUTAGES else WRONG
            except DroppedError:
                outcome = DROPPED
            self.outcomes["writers", outcome] += 1
            if outcome == ANSWERED:
                return
            time.sleep(RETRY_SECONDS)

    def change(self, tag: Tag, state: tuple[int, int, str] | None, *request: Any) -> None:
        """Bring a tag into a state by a write."""
        tag.states.append(state)
        self.write(*request)
        tag.acknowledged = len(tag.states) - 1

    def create(self, tag: Tag) -> None:
        """Create a tag. Readers ask for it from then on."""
        self.change(tag, (0, -1, "unlocked"), "POST", "gt", {"name": tag.name, "status": "unlocked"})

    def new_tag(self) -> Tag:
        """A new tag with its payload type."""
        tag = Tag(f"cached-{uuid.uuid4().hex[:12]}")
        self.write("POST", "pt", {"name": tag.name})
        self.tags.append(tag)
        self.create(tag)
        return tag

    def insert(self, tag: Tag, number: int, count: int) -> None:
        """Insert a row as the `count`-th of the tag."""
        self.change(tag, (count, number, "unlocked"), "POST", "payload-iovs/insert", tag.row(number))


def inserting(stage: Stage) -> Iterator[None]:
    """Insert rows into one tag."""
    tag = stage.new_tag()
    for number in itertools.count():
        stage.insert(tag, number, number + 1)
        yield


def freezing(stage: Stage) -> Iterator[None]:
    """Insert three rows into a tag and freeze it, again and again."""
    while True:
        tag = stage.new_tag()
        for number in range(3):
            stage.insert(tag, number, number + 1)
            yield
        for status in ("locked", "frozen"):
            stage.change(tag, (3, 2, status), "PUT", f"gt_change_status/{tag.name}/{status}")
            yield


def deleting(stage: Stage) -> Iterator[None]:
    """Insert a row into a tag, delete the tag and create it again, again and again."""
    tag = stage.new_tag()
    for number in itertools.count():
        stage.insert(tag, number, 1)
        yield
        stage.change(tag, None, "DELETE", f"deleteGlobalTag/{tag.name}")
        yield
        stage.create(tag)
        yield


def fail_over(stage: Stage, seconds: float) -> None:
    """Kill the primary and stop its Patroni, as if its host were lost, until a standby is the primary."""
    name = local.primary(stage.cluster)
    patroni = [one for one in stage.root.children(recursive=True) if f"{name}/patroni.yml" in " ".join(one.cmdline())]
    with frozen(patroni):
        kill(usage.processes_in(stage.cluster.directory / str(name) / "data"))
        if not becomes_true(lambda: local.primary(stage.cluster) not in (None, name), TIMEOUT_SECONDS):
            raise ServiceError("no standby became the primary")
        time.sleep(seconds)


# By name: what writers do, what happens meanwhile, and whether a response may be an outage.
PHASES: Mapping[str, tuple[Callable[[Stage], Iterator[None]], Callable[[Stage, float], None] | None, bool]] = {
    "writes": (inserting, None, False),
    "freeze": (freezing, None, False),
    "deletion": (deleting, None, False),
    "failover": (inserting, fail_over, True),
}


def read(stage: Stage, number: int) -> Counter[tuple[str, str]]:
    """Send requests for the newest tags through one address after the other until the phase is over: outcomes by address.

    Every second reader keeps its connections, and every third its responses, which it revalidates.
    """
    options: dict[str, Any] = {"keep_alive": bool(number % 2), "timeout": TIMEOUT_SECONDS}
    clients = {place: Client(stage.url(place), **options) for place in stage.ports}
    places, outcomes = list(stage.ports), Counter[tuple[str, str]]()
    stored: dict[tuple[str, str], Response] = {}
    while not stage.over.wait(0 if stage.tags else RETRY_SECONDS):
        if not stage.tags:
            continue
        # All readers at the same address at the same time, because only requests at the same time could share a response.
        place = places[int(time.monotonic() / PLACE_SECONDS) % len(places)]
        tag, light = random.choice(stage.tags[-WRITERS:]), random.random() < 0.3
        path = f"globalTag/{tag.name}?light" if light else lookup_path(tag.name, LAST)
        kept = None if number % 3 else stored.get((place, path))
        oldest, least = tag.acknowledged, tag.revision
        try:
            response = clients[place].request("GET", path, **({"If-None-Match": kept.headers["etag"]} if kept else {}))
            if kept and response.status == 304:
                response = Response(kept.status, kept.headers, kept.body)
            outcome = tag.judge(oldest, least, response, light=light)
            if "etag" in response.headers:
                stored[place, path] = response
        except DroppedError:
            outcome = DROPPED
        except (ValueError, KeyError, TypeError):
            outcome = WRONG
        outcomes[place, outcome] += 1
    return outcomes


def play(stage: Stage, name: str, seconds: float, *, collapsed: bool = False) -> list[dict[str, Any]]:
    """Play a phase: a row of the table for each address."""
    writing, fault, may_fail = PHASES[name]
    stage.begin()

    def write() -> None:
        for _ in writing(stage):
            if stage.over.is_set():
                return

    with ThreadPoolExecutor(READERS + WRITERS) as pool:
        readers = [pool.submit(read, stage, number) for number in range(READERS)]
        writers = [pool.submit(write) for _ in range(WRITERS)]
        try:
            time.sleep(seconds)
            if fault:
                fault(stage, seconds)
        finally:
            stage.over.set()
    for writer in writers:
        writer.result()
    outcomes = sum((reader.result() for reader in readers), stage.outcomes)
    rows = []
    for place in ("writers", *stage.ports):
        counts = {outcome: outcomes[place, outcome] for outcome in (ANSWERED, UNAVAILABLE, DROPPED, STALE, WRONG)}
        bad = counts[WRONG] + (0 if collapsed else counts[STALE])
        bad += 0 if may_fail else counts[UNAVAILABLE] + counts[DROPPED]
        row = {"phase": name, "collapsed": "on" if collapsed else "off", "through": place}
        rows.append(row | {"requests": sum(counts.values())} | counts | {"good": not bad and counts[ANSWERED] > 0})
    _say(*rows)
    return rows


def collapse(stage: Stage) -> None:
    """Switch collapsed forwarding on in both Squids."""
    supervisor = ("-m", "supervisor.supervisorctl", "-c", str(stage.cluster.directory / "supervisord.conf"))
    for name in ("squid-central", "squid-site"):
        path = stage.cluster.directory / name / "squid.conf"
        path.write_text(path.read_text().replace("collapsed_forwarding off", "collapsed_forwarding on"))
        python(stage.settings, *supervisor, "restart", name)
    _wait_until_ready(stage.ports.values())


class Logs:
    """The lookups in the access logs of the central Squid and of both hosts since this object was created."""

    def __init__(self, stage: Stage) -> None:
        directory = stage.cluster.directory
        hosts = [directory / f"host-{name}" / "serve" / "access.log" for name in stage.cluster.hosts]
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


def lookups_by_kind(stage: Stage) -> dict[str, tuple[str, str]]:
    """Lookups of each kind, in tags with the rows of a scenario: the base path and the path."""
    paths = {}
    for name in ("unlocked", "locked", "frozen"):
        manage(stage.settings, "seed_scenario", SCENARIO, "--layout", "random", "--global-tag", f"is-{name}")
        for status in {"locked": ["locked"], "frozen": ["locked", "frozen"]}.get(name, []):
            stage.write("PUT", f"gt_change_status/is-{name}/{status}")
        paths[name] = "", lookup_path(f"is-{name}", LAST)
    stage.write("POST", "pt", {"name": CHANGED})
    found = Client(stage.url("host a")).call("GET", lookup_path("is-unlocked", LAST))
    revision = found.headers["cdb-revision"]
    path = paths["unlocked"][1]
    return paths | {"rev=": ("", f"{path}&rev={revision}"), "pinned": (f"/pin/is-unlocked@{revision}", path)}


def measure(stage: Stage, kind: str, lookup: tuple[str, str], place: str, seconds: int) -> dict[str, Any]:
    """Send a lookup again and again through a cache: the row of the table."""
    if kind == "unlocked":
        # Its first lookup comes before the second is over in which it changed.
        stage.write("POST", "payload-iovs/insert", insert_body(f"is-{kind}", CHANGED, 0, (int(time.time()), 0)))
    address, path = stage.url(place) + lookup[0], lookup[1]
    client = Client(address, keep_alive=False)
    if kind not in ASKED:
        # Until a standby has the state, its responses must be revalidated.
        becomes_true(lambda: "immutable" in client.call("GET", path).headers["cache-control"], TIMEOUT_SECONDS)
    logs = Logs(stage)
    sent = wrk.measure(address + PREFIX + path, seconds=seconds, connections=CONNECTIONS, lookups=False)
    central, hosts, unmodified = logs.counts()
    requests, through = sent["requests"], {}
    if is_squid := "Squid" in place:
        through = {"central": central, "hits of central, %": 100 * max(0, 1 - hosts / max(central, 1))}
    is_cheap = hosts < requests * MOST_SHARE if kind not in ASKED else unmodified > hosts / 2 or not is_squid
    return {
        "kind": kind,
        "through": place,
        "requests": requests,
        "hits, %": 100 * max(0, 1 - (central if is_squid else hosts) / requests),
        **through,
        "hosts": hosts,
        "hosts, %": 100 * hosts / requests,
        "304, %": 100 * unmodified / max(hosts, 1),
        "errors": sent["errors"],
        "good": is_cheap and not sent["errors"],
    }


def _wait_until_ready(ports: Any) -> None:
    if not becomes_true(lambda: all(local.status(port, "/health/ready") == 200 for port in ports), START_SECONDS):
        raise ServiceError("a cache or a host of the service is not ready")


@contextlib.contextmanager
def cached(directory: Path) -> Iterator[Stage]:
    """Run a new cluster, and Varnish before its hosts, inside the block."""
    shutil.rmtree(directory, ignore_errors=True)
    directories.make_private(directory, None)
    settings = Settings(directory, {})
    with running(settings, program=("-m", "deploy.cluster.local"), ports=PORTS + 1) as service:
        cluster, varnish = local.Cluster(directory / "cluster", service.port), service.port + PORTS
        try:
            with _varnish(cluster, varnish):
                _wait_until_ready([varnish])
                yield Stage(cluster, settings.having(DATABASE_URL=cluster.database_url("a")), service.root(), varnish)
        finally:
            service.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                service.process.wait(local.STOP_SECONDS)


@contextlib.contextmanager
def _varnish(cluster: local.Cluster, port: int) -> Iterator[None]:
    backend = 'backend {} {{ .host = "127.0.0.1"; .port = "{}"; .probe = ready; .connect_timeout = 2s; }}'
    values = {
        "BACKENDS": "\n".join(backend.format(*host) for host in cluster.hosts.items()),
        "DIRECTOR": "\n    ".join(f"hosts.add_backend({name});" for name in cluster.hosts),
    }
    # Varnish's own account reads it.
    with tempfile.TemporaryDirectory(prefix="cdb-varnish-") as directory:
        Path(directory).chmod(0o755)
        vcl = Path(directory) / "default.vcl"
        vcl.write_text(templates.fill("cache/varnish.vcl", values))
        command = [local._path("varnishd"), "-F", "-n", f"{directory}/work", "-a", f"127.0.0.1:{port}", "-f", str(vcl)]
        with (cluster.directory / "varnish.log").open("w") as log, started([*command, "-s", "malloc,256m"], None, log):
            yield


def main(arguments: Sequence[str]) -> int:
    """Play all phases and measure the load. Returns 1 if a response was stale or wrong, or if the hosts got too much."""
    parser = argparse.ArgumentParser(prog="make cache-test", description=__doc__, epilog=EXPLANATION)
    parser.add_argument(
        "--quick", action="store_true", help=f"phases of {QUICK_SECONDS} s instead of {SECONDS} s, no peak"
    )
    options = parser.parse_args(arguments)
    prepare_process()
    seconds = QUICK_SECONDS if options.quick else SECONDS
    directory = (env.read()["CDB_DATA_DIR"] / "caches").resolve()
    rows: list[dict[str, Any]] = []
    load: list[dict[str, Any]] = []
    try:
        with cached(directory) as stage:
            lookups = lookups_by_kind(stage)
            for place, (kind, lookup) in itertools.product(("site Squid", "Varnish"), lookups.items()):
                load.append(measure(stage, kind, lookup, place, seconds))
                _say(load[-1])
            if not options.quick:
                manage(stage.settings, "seed_scenario", PEAK_SCENARIO, "--layout", "random", "--seed", "1")
                load += [peak(stage, place) for place in ("host a", "site Squid")]
                _say(*load[-2:])
            for name in PHASES:
                rows += play(stage, name, seconds)
            collapse(stage)
            rows += play(stage, "writes", 3 * seconds, collapsed=True)
    except (ServiceError, env.ConfigurationError) as error:
        sys.stderr.write(f"make cache-test: {error}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    is_good = all(row["good"] for row in rows + load)
    for name, title, table, text in (
        ("stale", "Stale responses", rows, EXPLANATION),
        ("load", "Load on the hosts", load, LOAD),
    ):
        figures = pandas.DataFrame(table)
        verdict = f"{int(figures['good'].sum())} of {len(figures)} rows are as they must be"
        found = bool(figures["good"].all())
        page = report.write(directory / name, title, figures, verdict=verdict, is_good=found, texts=[text])
        print(f"\n{figures.to_string(index=False, float_format=report.number, na_rep='')}\n{verdict}.\n{page}")
    return 0 if is_good else 1


def peak(stage: Stage, place: str) -> dict[str, Any]:
    """Let the jobs of sPHENIX's peak second start together (campaign `peak`): the row of the table."""
    words = ["-m", "loadtests", "peak", "--host", stage.url(place)]
    finished = run_to_end([sys.executable, *words], stage.settings.environment())
    pages = [Path(line) for line in finished.output.splitlines() if line.endswith("report.html")]
    if not pages:
        raise ServiceError(f"campaign peak: {finished.output[-300:]}")
    figures = pandas.read_csv(pages[0].with_name("figures.csv"))
    middle = {name: figures[name].median() for name in ("requests", "success", "p50", "p99", "max")}
    return {"kind": "peak", "through": place, **middle, "good": not finished.code}


def _say(*rows: Mapping[str, Any]) -> None:
    for row in rows:
        shown = {name: report.number(value) if isinstance(value, float) else value for name, value in row.items()}
        print(", ".join(f"{name} {value}" for name, value in shown.items()), flush=True)


if __name__ == "__main__":
    os.environ["no_proxy"] = ",".join(filter(None, [os.environ.get("no_proxy"), "127.0.0.1"]))
    sys.exit(main(sys.argv[1:]))
