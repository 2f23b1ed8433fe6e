"""The service on two hosts while its database fails over: lost states are not kept, and revisions are not used again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.clients import PREFIX, ask
from tests.e2e.service import JobClient, Service
from tests.waiting import eventually

LOOKUP = "payloadiovs/?gtName={}&majorIOV=9000000&minorIOV=0"
TAGS = ["fresh", *(f"fresh{number}" for number in range(5))]
MUST_ASK = "public, no-cache"
# Whether the standby has all WAL, and whether nothing follows the header of the newest file of WAL.
IDLE = """SELECT ARRAY[restart_lsn >= pg_current_wal_flush_lsn(),
    (pg_walfile_name_offset(pg_current_wal_insert_lsn())).file_offset = 40] FROM pg_replication_slots"""


@pytest.fixture
def hosts(pair, needs_packages, new_directory):
    """Two hosts of the service in its production shape."""
    settings = {"DATABASE_URL": pair.url, "CDB_REPLICATION_SLOTS": "1"}
    first, second = (Service(new_directory() / "data", "serve", **settings) for _ in range(2))
    with first.running(), second.running():
        yield first, second


def insert(service, number, tag="fresh", **headers):
    row = {"global_tag": tag, "payload_type": "Fresh", "payload_url": str(number), "checksum": "c"}
    return JobClient(service.port).call(
        "POST", "payload-iovs/insert", row | {"since": [number, 0], "until": "open"}, headers
    )


def create(service, tag, status="unlocked"):
    assert JobClient(service.port).call("POST", "gt", {"name": tag, "status": status})[0] == 200


def freeze(service, tag):
    assert JobClient(service.port).call("PUT", f"gt_change_status/{tag}/frozen", None)[0] == 200


def revisions(service):
    return {tag["name"]: tag["revision"] for tag in JobClient(service.port).get("globalTags")}


def follow(service, cursor):
    """What changes after a cursor of `changes`, and whether the cursor is lost; and the next cursor."""
    page = JobClient(service.port).get(f"changes?after={cursor}")
    return [(one["global_tag"], one["action"]) for one in page["changes"]], page["lost"], page["cursor"]


def targets(tag, revision):
    """Requests for the frozen tag and for the revision of the tag fresh."""
    past = LOOKUP.format("fresh")
    return [
        *(PREFIX + path for path in (LOOKUP.format(tag), f"globalTag/{tag}?light", f"gtPayloadLists/{tag}")),
        *(
            f"{PREFIX}{past}&rev={revision}",
            f"/pin/fresh@{revision}{PREFIX}{past}",
            f"{PREFIX}globalTag/fresh?shape=whole&rev={revision}",
        ),
        f"{PREFIX}{LOOKUP.format(tag)}&gtName=fresh&rev=&rev={revision}",
    ]


def permission(service, target):
    status, headers, _ = ask(service, "GET", target)
    assert status == 200
    return headers["Cache-Control"]


def test_what_an_asynchronous_failover_loses_is_in_no_cache_and_its_revisions_are_not_used_again(pair, hosts):
    here, there = hosts
    JobClient(here.port).call("POST", "pt", {"name": "Fresh"})
    for tag in (*TAGS, "kept"):
        create(here, tag)
        assert insert(here, 1, tag)[0] == 200
    freeze(here, "kept")
    kept = targets("kept", revisions(here)["fresh"])
    for target in kept:
        eventually(lambda target=target: ("immutable" in permission(here, target), target), (True, target))
    answers = [ask(here, "GET", target)[2] for target in kept]
    first = insert(here, 2, **{"Idempotency-Key": "kept"})
    kept_cursor = follow(here, "now")[2]
    pair.second.wait_until_caught_up()

    pair.second.cut_off()
    last = insert(here, 3, **{"Idempotency-Key": "lost"})
    assert first[0] == last[0] == 200
    create(here, "lost")
    assert insert(here, 3, "lost")[0] == 200
    freeze(here, "lost")
    lost = targets("lost", revisions(here)["fresh"])
    for target in lost:
        for host in (here, here, here, there):
            assert permission(host, target) == MUST_ASK, target
    _, known, _ = ask(here, "GET", lost[0])
    assert ask(here, "GET", lost[0], **{"If-None-Match": known["ETag"]})[0] == 304
    before = revisions(here)
    seen, _, lost_cursor = follow(here, kept_cursor)
    assert seen == [("fresh", "insert"), *(("lost", action) for action in ("create", "insert", "status"))]

    pair.kill_first()
    pair.second.promote()
    eventually(lambda: ask(there, "GET", f"{PREFIX}globalTags")[0], 200, 60)
    with ThreadPoolExecutor(len(TAGS)) as pool:
        written = list(pool.map(lambda tag: insert(there, 4, tag), TAGS))
    assert [status for status, _ in written] == [200] * len(TAGS), written
    after = revisions(there)
    for cursor in (kept_cursor, lost_cursor):
        seen, is_lost, newest = follow(there, cursor)
        assert (sorted(seen), is_lost) == ([(tag, "insert") for tag in TAGS], cursor == lost_cursor)
        assert int(newest) > int(lost_cursor) and not follow(here, newest)[1]
    assert all(after[tag] > max(before.values()) for tag in TAGS)
    assert {tag: after[tag] for tag in after.keys() - set(TAGS)} == {tag: before[tag] for tag in ("tiny", "kept")}
    statement = """SELECT array_agg(first_revision > 1 ORDER BY id) FROM "Restoration" """
    assert pair.value(statement) == [False, True]

    for target in lost:
        assert ask(here, "GET", target)[0] == 404, target
    create(there, "lost")
    assert insert(there, 5, "lost")[0] == 200
    freeze(there, "lost")
    for host in hosts:
        for headers in (
            {},
            {"If-None-Match": known["ETag"]},
            {"If-Modified-Since": known.get("Last-Modified", "never")},
            {"If-None-Match": known["ETag"], "If-Modified-Since": known.get("Last-Modified", "never")},
        ):
            status, _, rows = ask(host, "GET", lost[0], **headers)
            assert (status, rows[0][1]) == (200, "5"), headers
        assert ask(host, "GET", lost[0], **{"If-Match": known["ETag"]})[0] == 412
        assert [ask(host, "GET", target)[2] for target in kept] == answers

    assert insert(there, 2, **{"Idempotency-Key": "kept"}) == first
    assert insert(there, 3, **{"Idempotency-Key": "lost"})[0] == 200
    again = insert(here, 3, **{"Idempotency-Key": "lost"})
    assert again == insert(there, 3, **{"Idempotency-Key": "lost"}) and again[0] == 200

    # The new primary has no standby yet.
    assert permission(there, lost[0]) == MUST_ASK
    pair.value("SELECT pg_create_physical_replication_slot('next', true)")
    assert permission(there, lost[0]) == MUST_ASK
    pair.value("SELECT pg_replication_slot_advance('next', pg_current_wal_insert_lsn())")
    eventually(lambda: "immutable" in permission(there, lost[0]), True)
    eventually(lambda: ask(there, "GET", lost[0])[1]["CDB-Cache"], "HIT")


def test_a_switchover_changes_no_tag_and_a_standby_without_a_slot_is_named(pair, new_directory):
    with Service(new_directory() / "data", DATABASE_URL=pair.url).running() as service:
        JobClient(service.port).call("POST", "pt", {"name": "Fresh"})
        create(service, "fresh")
        before = revisions(service)
        warning = "Warning: standbys without a replication slot: "
        assert warning not in service.manage("prepare").stdout
        pair.second.leave_slot()
        assert f"{warning}1" in service.manage("prepare").stdout

        pair.first.stop()
        pair.second.promote()
        eventually(lambda: ask(service, "GET", f"{PREFIX}globalTags")[0], 200, 60)
        assert revisions(service) == before
        assert insert(service, 1)[0] == 200
        for arguments in (("backup", str(new_directory() / "dump")), ("check_history",)):
            assert service.manage(*arguments).returncode == 0
        after = revisions(service)
        assert after.pop("fresh") > before.pop("fresh") + 1000
        assert after == before


def test_a_frozen_tag_is_immutable_while_an_idle_primary_has_begun_a_new_file_of_wal(pair, new_directory):
    settings = {"DATABASE_URL": pair.url, "CDB_REPLICATION_SLOTS": "1"}
    with Service(new_directory() / "data", **settings).running() as service:
        for number in range(10):
            create(service, f"idle{number}")
            freeze(service, f"idle{number}")
            # What PostgreSQL does after archive_timeout.
            pair.value("SELECT pg_switch_wal()")
            pair.second.wait_until_caught_up()
            eventually(lambda: pair.value(IDLE)[0], True)
            permissions = [permission(service, f"{PREFIX}globalTag/idle{number}?light") for _ in range(3)]
            if pair.value(IDLE) == [True, True]:
                assert "immutable" in permissions[-1]
                return
    pytest.fail("the primary was never idle")
