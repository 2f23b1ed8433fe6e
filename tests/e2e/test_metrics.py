"""/metrics of `make serve`, compared with a load of a known number of requests."""

import http.client
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cdb.env import ROOT
from tests.e2e.clients import PREFIX
from tests.e2e.faults import locked
from tests.e2e.service import JobClient, Service
from tests.waiting import eventually

THREADS = 8
LOOKUP, TAGS, TYPES = f"{PREFIX}payloadiovs", f"{PREFIX}globalTags", f"{PREFIX}pt"
SAME = f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=7&minorIOV=7"


class Metrics:
    """What /metrics said at a time."""

    def __init__(self, port: int) -> None:
        # Processes that replace killed ones need seconds on a busy machine, and a scrape gets 504 meanwhile.
        eventually(lambda: self._scrape(port), 200, 60)
        self.families = list(text_string_to_metric_families(self.text))
        self.samples = [sample for family in self.families for sample in family.samples]

    def _scrape(self, port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        self.text = answer.read().decode()
        connection.close()
        return answer.status

    def sum(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have these labels."""
        return sum(
            sample.value for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items()
        )

    def by(self, name: str, *labels: str) -> Counter:
        """The samples of that name that are not zero, by the values of these labels."""
        found = Counter()
        for sample in self.samples:
            if sample.name == name and sample.value:
                found[tuple(sample.labels[label] for label in labels)] += int(sample.value)
        return found

    @property
    def requests(self) -> Counter:
        """The requests by route, method and status, without those that look after the service."""
        found = self.by("cdb_requests_total", "route", "method", "status")
        return Counter({key: number for key, number in found.items() if key[0].startswith("/api/")})


class Load:
    """Requests of all kinds from several threads; `asked` counts, by route, method and status, those that got to the service:
    nginx says in each answer whether it asked it, and `asked` has 304 where nginx was told that what it had still held."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._number = time.monotonic_ns()
        self.asked: Counter = Counter()
        self.errors: Counter = Counter()

    def run(self, rounds: int) -> None:
        """Ask in each thread as many times for everything."""
        with ThreadPoolExecutor(THREADS) as pool:
            for asked, errors in pool.map(lambda number: self._ask(rounds, number), range(THREADS)):
                self.asked += asked
                self.errors += errors

    def _requests(self, rounds: int, thread: int) -> Iterator[tuple[str, str, str, bytes | None]]:
        """Route, method, target and body."""
        for turn in range(rounds):
            unlike = f"{self._number % 10**9}{thread:02}{turn:05}"
            yield LOOKUP, "GET", f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=5&minorIOV={unlike}", None
            yield LOOKUP, "GET", SAME, None
            yield LOOKUP, "GET", f"{PREFIX}payloadiovs/?gtName=none&majorIOV=1&minorIOV=1", None
            if turn % 5 == 0:
                yield LOOKUP, "GET", f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=x&minorIOV=1", None
                yield TAGS, "GET", TAGS, None
                yield TYPES, "POST", TYPES, json.dumps({"name": f"type{unlike}"}).encode()

    def _ask(self, rounds: int, thread: int) -> tuple[Counter, Counter]:
        asked, errors = Counter(), Counter()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        for route, method, target, body in self._requests(rounds, thread):
            connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            content = json.loads(answer.read())
            verdict = answer.getheader("CDB-Cache")
            if verdict != "HIT":
                status = 304 if verdict == "REVALIDATED" else answer.status
                asked[route, method, str(status)] += 1
            if answer.status >= 400:
                errors[(content["code"],)] += 1
        connection.close()
        return asked, errors

    @property
    def lookups(self) -> int:
        """Those that got to the lookup's code: all but the malformed ones."""
        return sum(n for (route, _, status), n in self.asked.items() if route == LOOKUP and status != "400")


def workers(service: Service, program: str) -> list[psutil.Process]:
    """The processes of granian or gunicorn that answer: children of its first one."""
    found = service.programs(program)
    pids = {process.pid for process in found}
    return [process for process in found if process.ppid() in pids]


FUNNEL = ("cdb_lookups_received_total", "cdb_lookups_started_total", "cdb_lookups_finished_total")


@pytest.fixture(scope="module")
def counting(new_directory, needs_packages):
    with Service(new_directory() / "data", "serve", CDB_WORKERS="2").running() as running:
        yield running


def look(service):
    return Metrics(service.port)


def check(service, before, load):
    """Compare the counts since `before` with those of the load, exactly."""
    eventually(lambda: look(service).requests - before.requests, load.asked)
    after = look(service)
    received, started, finished = (after.sum(name) - before.sum(name) for name in FUNNEL)
    assert received == load.lookups and started == finished and 0 <= started <= received
    assert after.by("cdb_errors_total", "code") - before.by("cdb_errors_total", "code") == load.errors
    counted = [metrics.sum("cdb_request_duration_seconds_count", route=LOOKUP) for metrics in (before, after)]
    assert counted[1] - counted[0] == sum(n for (route, *_), n in load.asked.items() if route == LOOKUP)


def test_the_counts_are_those_of_the_load_also_after_processes_were_killed(counting):
    for is_killed in (False, True):
        if is_killed:
            for process in workers(counting, "granian"):
                process.kill()
            eventually(lambda: len(workers(counting, "granian")) >= 2, True)
            eventually(lambda: JobClient(counting.port).call("GET", "globalTags")[0], 200)
        before, load = look(counting), Load(counting.port)
        load.run(20)
        check(counting, before, load)


def test_requests_of_a_killed_process_are_no_longer_in_progress(counting):
    eventually(lambda: look(counting).sum("cdb_requests_in_progress"), 1)
    with locked(counting, "PayloadList") as holder, ThreadPoolExecutor(3) as pool:
        reads = [pool.submit(JobClient(counting.port).call, "GET", "pl?page=1") for _ in range(3)]
        # The reads and the scrape itself.
        eventually(lambda: look(counting).sum("cdb_requests_in_progress") >= 2, True)
        for process in workers(counting, "gunicorn"):
            process.kill()
        eventually(lambda: len(workers(counting, "gunicorn")) >= 2, True)
        holder.rollback()
        assert {read.result()[0] for read in reads} <= {200, 504}
    eventually(lambda: look(counting).sum("cdb_requests_in_progress"), 1)


def test_the_figures_of_tags_and_of_the_database_are_there(counting):
    metrics = look(counting)
    assert all(family.documentation for family in metrics.families)
    assert metrics.sum("cdb_database_up") == 1
    assert metrics.sum("cdb_global_tags") == len(JobClient(counting.port).get("globalTags"))
    assert metrics.sum("cdb_global_tag_payload_iovs", global_tag="tiny") == 100
    documented = set(re.findall(r"^\| `(cdb_\w+)` \|", (ROOT / "docs" / "monitoring.md").read_text(), re.MULTILINE))
    exposed = {sample.name for sample in metrics.samples if sample.name.startswith("cdb_")}
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in exposed} <= documented
