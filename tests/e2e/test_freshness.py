"""Once a write has been acknowledged, no client sees an older response: not from the service, not through nginx's cache, and
not from a cache of its own that revalidates its responses.
"""

import http.client
import json
import sys
import threading

import pytest

from tests.e2e.service import JobClient, Service
from tests.e2e.test_metrics import Metrics

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
    with Service(new_directory() / "data", CDB_WORKERS="1", CDB_THREADS="2").running() as running:
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
