"""nginx's cache in front of the real service: what it stores and revalidates, and that no response is older than a write."""

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from django.utils.http import http_date, parse_http_date

from cdb.processes import templates
from deploy.cluster.local import status as status_of
from loadtests.service import becomes_true, free_port, started
from tests.e2e.clients import PREFIX, ask
from tests.e2e.service import JobClient, Service, raw
from tests.e2e.test_metrics import Metrics
from tests.programs import find, require
from tests.waiting import eventually

UNLOCKED = f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


def freeze_copy(service):
    """A lookup in a frozen copy of `tiny`."""
    client = JobClient(service.port)
    status, tag = client.call("POST", f"cloneGlobalTag/tiny/frozen{time.monotonic_ns()}", None)
    assert status == 200
    assert client.call("PUT", f"gt_change_status/{tag['name']}/frozen", None)[0] == 200
    return f"{PREFIX}payloadiovs/?gtName={tag['name']}&majorIOV=5&minorIOV=0"


@contextlib.contextmanager
def supervision_paused(service):
    """Inside the block, programs that end are not restarted."""
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="module")
def own(needs_packages, new_directory):
    """A service for the tests that kill parts of one. nginx waits for its responses for no longer than these times and some
    seconds."""
    settings = {"CDB_QUEUE_TIMEOUT_SECONDS": "2", "CDB_LOOKUP_TIMEOUT_SECONDS": "2"}
    with Service(new_directory() / "data", "serve", **settings).running() as service:
        yield service


def test_a_frozen_answer_is_kept_and_an_unlocked_one_is_asked_for_each_time(served):
    frozen = freeze_copy(served)
    # What is asked for only once is not kept.
    assert [ask(served, "GET", frozen)[1]["CDB-Cache"] for _ in range(4)] == ["MISS", "MISS", "HIT", "HIT"]
    found = [ask(served, "GET", f"{UNLOCKED}&strict=1")[1]["CDB-Cache"] for _ in range(4)]
    assert found == ["MISS", "MISS", "REVALIDATED", "REVALIDATED"]


@pytest.mark.parametrize(
    "path",
    [
        "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0",
        "gtPayloadLists/tiny?",
        "globalTag/tiny?light",
        "globalTag/tiny?shape=whole",
    ],
)
def test_a_revision_of_an_unlocked_tag_is_kept(served, path):
    target = f"{PREFIX}{path}&new={time.monotonic_ns()}"
    _, headers, now = ask(served, "GET", target)
    revision = headers["CDB-Revision"]
    # As in the other tests, what is asked for only once is not kept.
    found = [ask(served, "GET", f"{target}&rev={revision}") for _ in range(4)]
    assert [headers["CDB-Cache"] for _, headers, _ in found] == ["MISS", "MISS", "HIT", "HIT"]
    assert all((status, body) == (200, now) and headers["CDB-Revision"] == revision for status, headers, body in found)
    at = [ask(served, "GET", f"{target}&at=2999-01-01") for _ in range(3)]
    assert {(status, headers["Cache-Control"]) for status, headers, _ in at} == {(404, "no-store")}
    moment = ask(served, "GET", f"{PREFIX}global-tags/tiny/changes/{revision}")[2]["time"]
    at = [ask(served, "GET", f"{target}&at={moment}") for _ in range(4)]
    assert [headers["CDB-Cache"] for _, headers, _ in at] == ["MISS", "MISS", "REVALIDATED", "REVALIDATED"]
    assert all(body == now for _, _, body in at)


@pytest.mark.parametrize(
    "path", ["globalTags?", "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0", "gtPayloadLists/tiny/?"]
)
def test_a_pinned_response_is_kept_and_the_present_at_its_address_is_not(served, log, path):
    base = f"/pin/tiny@{JobClient(served.port).get('globalTag/tiny?light')['revision']}{PREFIX}"
    found = [ask(served, "GET", f"{base}{path}&new={new}") for new in [time.monotonic_ns()] * 4]
    assert [headers["CDB-Cache"] for _, headers, _ in found] == ["MISS", "MISS", "HIT", "HIT"]
    assert all((status, body) == (200, found[0][2]) for status, _, body in found)
    assert log[found[0][1]["X-Request-ID"]]["pool"] == "lookups"
    for present in ("pt", "global-tags/statuses", "user_settings/CDB_IOV_MODE"):
        status, headers, _ = ask(served, "GET", base + present)
        assert (status, headers["Cache-Control"], headers["CDB-Cache"]) == (200, "no-store", None)


def test_the_answers_are_those_of_the_service_and_a_client_that_has_one_gets_304(served, service):
    direct = ask(service, "GET", UNLOCKED)[2]
    status, headers, rows = ask(served, "GET", UNLOCKED)
    assert (status, rows) == (200, direct)
    assert headers["Cache-Control"] == "public, no-cache" and "X-Accel-Expires" not in headers
    assert ask(served, "GET", UNLOCKED, **{"If-None-Match": headers["ETag"]})[0] == 304
    assert ask(served, "GET", UNLOCKED, **{"If-None-Match": '"other"'})[0] == 200
    assert ask(served, "HEAD", UNLOCKED)[1]["Content-Length"] == headers["Content-Length"]


@pytest.mark.parametrize(
    "path",
    [
        "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0",
        "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0&rev=1",
        "gtPayloadLists/tiny",
        "globalTags",
        "globalTag/tiny?light",
        "globalTag/tiny",
        "global-tags/tiny/diff/tiny",
    ],
)
def test_if_none_match_decides_also_if_a_cache_sends_a_time_with_it(served, path):
    # nginx has the response by the third request.
    _, headers, _ = [ask(served, "GET", PREFIX + path) for _ in range(3)][-1]
    for time_sent in ("Sat, 01 Jan 2000 00:00:00 GMT", headers["Date"], headers["Last-Modified"] or headers["Date"]):
        known, unknown = (
            ask(served, "GET", PREFIX + path, **{"If-None-Match": etag, "If-Modified-Since": time_sent})
            for etag in (headers["ETag"], '"other"')
        )
        assert (known[0], known[2], known[1]["ETag"]) == (304, None, headers["ETag"])
        assert unknown[0] == 200 and unknown[2] is not None


def test_of_many_that_ask_for_the_same_at_once_one_goes_to_the_service(served):
    frozen = freeze_copy(served)
    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda _: ask(served, "GET", frozen), range(60)))
    assert {status for status, _, _ in found} == {200}
    states = [headers["CDB-Cache"] for _, headers, _ in found]
    # One more may have lost its patience with the first on a busy machine.
    assert states.count("MISS") <= 30 and states.count("HIT") >= 30


def test_without_granian_frozen_answers_go_on_and_others_are_504(own):
    frozen = freeze_copy(own)
    for target in (frozen, UNLOCKED) * 2:
        assert ask(own, "GET", target)[0] == 200
    answer = ask(own, "GET", frozen)[2]
    with supervision_paused(own):
        for process in own.programs("granian"):
            process.kill()
        for _ in range(20):
            status, headers, rows = ask(own, "GET", frozen)
            assert (status, headers["CDB-Cache"], rows) == (200, "HIT", answer)
        status, headers, error = ask(own, "GET", UNLOCKED)
        assert (status, error["code"], headers["Retry-After"]) == (504, "service_unavailable", "5")
        assert headers["Cache-Control"] == "no-store" and headers["Content-Type"] == "application/json"
    eventually(lambda: ask(own, "GET", UNLOCKED)[0], 200)


class Front(NamedTuple):
    """A cache in front of a service."""

    port: int


@contextlib.contextmanager
def in_front(cache, service):
    """Squid or Varnish, with its configuration in deploy/cache, in front of a service."""
    port, address = free_port(), f"127.0.0.1 parent {service.port} 0 no-query no-digest originserver"
    # The account of the cache reads and writes here.
    with tempfile.TemporaryDirectory(prefix="cdb-front-") as directory:
        Path(directory).chmod(0o777)
        values = {
            "LISTEN": f"127.0.0.1:{port}", "SITE": "127.0.0.1", "PEERS": f"cache_peer {address}", "COLLAPSED": "off",
            "DIRECTORY": directory, "NAME": "front", "DIRECTOR": "hosts.add_backend(a);",
            "BACKENDS": f'backend a {{ .host = "127.0.0.1"; .port = "{service.port}"; .probe = ready; }}',
        }  # fmt: skip
        file = Path(directory) / "configuration"
        file.write_text(templates.fill({"squid": "cache/squid.conf", "varnishd": "cache/varnish.vcl"}[cache], values))
        words = {
            "squid": ["-N", "-n", f"front{port}", "-f", file],
            "varnishd": ["-F", "-n", f"{directory}/work", "-a", f"127.0.0.1:{port}", "-f", file],
        }
        with started([find(cache), *map(str, words[cache])], None, subprocess.DEVNULL):
            front = Front(port)
            assert becomes_true(lambda: status_of(port, "/health/ready") == 200, 60)
            yield front


@pytest.fixture
def squid(served):
    require("squid")
    with in_front("squid", served) as front:
        yield front


@pytest.fixture
def varnish(served):
    require("varnishd")
    with in_front("varnishd", served) as front:
        yield front


@pytest.mark.parametrize("host", ["served", "squid", "varnish"])
def test_a_name_that_is_not_escaped_never_means_another_one(host, request):
    host = request.getfixturevalue(host)
    for path in (b"globalTag/ti ny?light", b"payloadiovs/?gtName=ti ny&majorIOV=5&minorIOV=0"):
        answer = raw(host.port, b"GET /api/cdb_rest/%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
        assert answer[0] in (400, 404), answer


@pytest.mark.parametrize(("host", "exact"), [("service", 304), ("served", 304), ("squid", 304), ("varnish", 200)])
def test_a_time_of_last_modification_counts_only_if_it_is_exactly_that_of_the_response(host, exact, request):
    host = request.getfixturevalue(host)
    eventually(lambda: "Last-Modified" in ask(host, "GET", UNLOCKED)[1], True)
    modified = parse_http_date(ask(host, "GET", UNLOCKED)[1]["Last-Modified"])
    for header, same, different in (("If-Modified-Since", exact, 200), ("If-Unmodified-Since", 200, 412)):
        for seconds in (-86_400, -1, 0, 1, 86_400):
            status = ask(host, "GET", UNLOCKED, **{header: http_date(modified + seconds)})[0]
            assert status == (different if seconds else same), (header, seconds)


READERS = 6
LEAST_READS = 100


class CachingReader(threading.Thread):
    """Reads over and over on one connection, and keeps answers as a cache does; `failures` are answers that were too old."""

    def __init__(self, port, path, number_of, acknowledged, done, *, caches):
        super().__init__(daemon=True)
        self.port, self.path, self.number_of, self.caches = port, path, number_of, caches
        self.acknowledged, self.done = acknowledged, done
        self.reads = self.kept = 0
        self.failures = []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        name, body = None, b""
        while not self.done.is_set():
            oldest = self.acknowledged[0]
            headers = {"If-None-Match": name} if name and self.caches else {}
            connection.request("GET", f"/api/cdb_rest/{self.path}", headers=headers)
            response = connection.getresponse()
            content = response.read()
            if response.status == 304:
                self.kept += 1
            elif response.status == 200:
                name, body = response.headers["ETag"], content
            else:
                self.failures.append((response.status, content))
                continue
            self.reads += 1
            found = self.number_of(json.loads(body))
            if found < oldest:
                self.failures.append((oldest, found))
        connection.close()


@pytest.fixture(scope="module")
def crowded(new_directory):
    with Service(new_directory() / "data", CDB_THREADS="2").running() as running:
        yield running


@pytest.fixture(params=["service", "served", "crowded"])
def behind(request):
    """The service itself, the service behind nginx, and one with two threads, for which requests wait."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def written_tag(behind):
    client = JobClient(behind.port)
    client.call("POST", "pt", {"name": "Fresh"})
    tag = f"fresh{behind.port}"
    assert client.call("POST", "gt", {"name": tag, "status": "unlocked"})[0] == 200
    yield tag
    client.call("DELETE", f"deleteGlobalTag/{tag}")


def test_no_response_is_older_than_an_acknowledged_write(behind, written_tag, request):
    client, acknowledged, done = JobClient(behind.port), [0], threading.Event()

    def write(number):
        # The next start each time, so that the numbers of IOVs in the tag count as well.
        row = {"global_tag": written_tag, "payload_type": "Fresh", "payload_url": str(number), "checksum": "c"}
        status, answer = client.call("POST", "payload-iovs/insert", row | {"since": [number, 0], "until": "open"})
        assert status == 200, answer
        acknowledged[0] = number

    write(1)
    lookup = f"payloadiovs/?gtName={written_tag}&majorIOV=9000000&minorIOV=0"
    readings = [
        (lookup, lambda rows: int(rows[0][1])),
        (f"globalTag/{written_tag}?light", lambda item: item["payload_iov_count"]),
        ("globalTags", lambda items: next(i["payload_iov_count"] for i in items if i["name"] == written_tag)),
    ]
    readers = [
        CachingReader(behind.port, *readings[number % 3], acknowledged, done, caches=number >= 3)
        for number in range(READERS)
    ]
    for reader in readers:
        reader.start()
    number, rounds = 1, request.config.getoption("rounds")
    # Until each has read often, also on a busy machine. One that has ended has a failure.
    while number < rounds or any(reader.is_alive() and reader.reads <= LEAST_READS for reader in readers):
        number += 1
        write(number)
    done.set()
    for reader in readers:
        reader.join(60)
        assert reader.failures == []
        assert reader.reads > LEAST_READS
    reads, kept = (sum(getattr(reader, count) for reader in readers) for count in ("reads", "kept"))
    shared = Metrics(behind.port).sum("cdb_shared_states_total")
    sys.stdout.write(f"{reads} reads, {kept} of them 304 responses, {shared:.0f} shared states\n")
    # With two threads, the tag has mostly changed when a reader comes again.
    assert kept > 0 or request.node.callspec.params["behind"] == "crowded"
