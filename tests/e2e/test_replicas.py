"""The service with a real streaming replica: which server is read, no stale response, and faults of the replica."""

import threading
import time

import pytest

from loadtests.harness import Database
from tests.e2e.clients import PREFIX, ask
from tests.e2e.faults import frozen_database
from tests.e2e.service import Service, raw
from tests.e2e.standby import LOOKUP, TELLING, Pair, Standby, Statements, tell
from tests.e2e.test_nginx_cache import CachingReader
from tests.waiting import eventually


@pytest.fixture(scope="module")
def pair(new_directory):
    directory = new_directory()
    directory.chmod(0o711)
    standby = Standby(directory / "data", directory / "standby", options=TELLING)
    service = Service(directory / "data", DATABASE_REPLICA_URLS=standby.url)
    try:
        service.start()
        with standby.running():
            made = Pair(service, standby)
            tell(f"postgresql://cdb@/cdb?host={service.data}/postgres/socket")
            made.client.call("POST", "pt", {"name": "Fresh"})
            assert made.client.call("POST", "gt", {"name": "fresh", "status": "unlocked"})[0] == 200
            assert made.client.call("PUT", "gt_change_status/tiny/frozen")[0] == 200
            made.insert(1)
            standby.wait_until_caught_up()
            made.wait_until_in()
            yield made
        assert service.stop() == 0
    finally:
        service.kill_everything()


@pytest.mark.parametrize("tag", ["tiny", "fresh"])
def test_the_replica_does_the_reading(pair, tag):
    pair.standby.wait_until_caught_up()
    statements = Statements(pair)
    request = f"GET /api/cdb_rest/{LOOKUP.format(tag)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    for _ in range(20):
        status, _, body = raw(pair.service.port, request)
        assert status == 200 and len(body) > 50
    primary, replica = statements.count("FROM cdb_answer(")
    # What needs the latest position goes to the primary while anything at all is on its way.
    assert primary + replica == 20 and replica >= 20


def read_while_written(pair, disturb, rounds):
    """Let readers read while rows are written and `disturb` is called with each round's number; returns the readers."""
    acknowledged, done = [pair.newest()], threading.Event()
    readings = [
        (LOOKUP.format("fresh"), lambda rows: int(rows[0][1])),
        ("globalTag/fresh?light", lambda item: item["payload_iov_count"]),
        ("globalTags", lambda items: next(i["payload_iov_count"] for i in items if i["name"] == "fresh")),
        ("global-tags/fresh/changes?page_size=1&order=desc", lambda page: page["count"] - 1),
    ]
    readers = [
        CachingReader(pair.service.port, *readings[number % len(readings)], acknowledged, done, caches=number >= 4)
        for number in range(2 * len(readings))
    ]
    for reader in readers:
        reader.start()
    for number in range(acknowledged[0] + 1, acknowledged[0] + 1 + rounds):
        disturb(number)
        pair.insert(number)
        acknowledged[0] = number
    done.set()
    for reader in readers:
        reader.join(60)
        assert reader.failures == [], reader.path
        assert reader.reads > 10
    return readers


def test_reads_have_all_acknowledged_writes_also_if_a_replica_stops_replaying(pair, request):
    def disturb(number):
        if number % 40 == 0:
            pair.standby.pause_replay()
        elif number % 40 == 20:
            pair.standby.resume_replay()

    try:
        read_while_written(pair, disturb, request.config.getoption("rounds") // 2)
    finally:
        pair.standby.resume_replay()
    pair.standby.wait_until_caught_up()
    pair.wait_until_in()


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_replica_that_ends_during_reads_fails_no_request_and_returns_to_rotation(pair, how):
    def disturb(number):
        if number % 20 == 10:
            getattr(pair.standby, how)()
            assert pair.client.get(LOOKUP.format("tiny"))
            pair.standby.start()

    read_while_written(pair, disturb, 20)
    pair.wait_until_in()


def test_frozen_tags_are_answered_without_a_primary_also_by_a_replica_that_lacks_something(pair):
    expected = pair.client.get(LOOKUP.format("tiny"))
    with pair.standby.replay_paused():
        pair.insert(pair.newest() + 1)
        with frozen_database(pair.service):
            # Longer than the allowed lag.
            time.sleep(4)
            for _ in range(20):
                assert pair.client.call("GET", LOOKUP.format("tiny")) == (200, expected)
            status, answer = pair.client.call("GET", LOOKUP.format("fresh"))
            assert (status, answer["code"]) == (504, "database_unavailable")
    pair.wait_until_in()


def test_a_frozen_tag_that_a_failover_could_lose_is_not_answered_without_the_primary(pair):
    database = Database(f"postgresql://cdb@/cdb?host={pair.service.data}/postgres/socket")
    # That of another standby, which has received nothing since.
    database.value("SELECT pg_create_physical_replication_slot('other', true)")
    assert pair.client.call("POST", "cloneGlobalTag/tiny/recent", None)[0] == 200
    assert pair.client.call("PUT", "gt_change_status/recent/frozen", None)[0] == 200
    pair.standby.wait_until_caught_up()
    target = LOOKUP.format("recent")
    expected = pair.client.get(target)
    with frozen_database(pair.service):
        assert pair.client.call("GET", target)[0] == 504
        assert pair.client.call("GET", LOOKUP.format("tiny"))[0] == 200
    database.value("SELECT pg_drop_replication_slot('other')")
    pair.wait_until_in()
    eventually(lambda: "immutable" in ask(pair.service, "GET", PREFIX + target)[1]["Cache-Control"], True)
    with frozen_database(pair.service):
        assert pair.client.get(target) == expected
    pair.wait_until_in()
