"""Concurrent writers with real transactions on separate connections: who waits for whom, and what they leave."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from cdb_rest.maintenance.history_check import find_history_faults
from cdb_rest.maintenance.pruning import Limit, prune_history
from cdb_rest.maintenance.repair import find_incorrect_counts, repair_faults
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.access import Origin
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import CdbError, ConcurrentChangeError, OverlapError
from cdb_rest.writes import bulk, global_tags, payload_iovs
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.transactions import write

WRITERS = 12


def together(calls):
    """Run the calls at the same time; returns what each returned or raised."""

    def run(call):
        try:
            return call()
        except CdbError as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@contextlib.contextmanager
def held(statement, *parameters):
    """Run a statement in a transaction of its own and keep that open inside the block."""
    holder = connection.copy()
    holder.set_autocommit(False)
    with holder.cursor() as cursor:
        cursor.execute(statement, parameters)
    try:
        yield
    finally:
        holder.rollback()
        holder.close()


def later(pool, call):
    """Start a call, and give it the time to reach the lock that it will wait for."""
    future = pool.submit(lambda: together([call])[0])
    time.sleep(0.5)
    return future


pytestmark = pytest.mark.django_db(transaction=True)


def test_a_source_that_is_deleted_while_its_clone_waits_is_deleted_after_it(build):
    tag = build.tag("source")
    build.iov(build.list(tag, "Gain"), (0, 0))
    with ThreadPoolExecutor(2) as pool:
        with held('INSERT INTO "GlobalTag" (name, status_id) VALUES (%s, %s)', "target", tag.status_id):
            cloning = later(pool, lambda: global_tags.clone_global_tag(source="source", target="target"))
            deleting = later(pool, lambda: global_tags.delete_global_tag(name="source"))
        assert isinstance(cloning.result(), GlobalTag)
        assert deleting.result() is None
    assert [(one.name, one.payload_iov_count) for one in GlobalTag.objects.all()] == [("target", 1)]


CHANGE_OF_THE_CLONE = """
    INSERT INTO "GlobalTagChange" (
        number, global_tag, revision, status, created, actor, action, comment, payload_iovs_before, payload_iovs_after
    )
    VALUES (0, 'copy', 1, 'unlocked', now(), '', 'clone', '', 0, 0)
"""


def add_row(payload_list, start):
    row = {"payload_url": "later", "payload_list": payload_list.name, "major_iov": start, "minor_iov": 0}
    return bulk.insert_payload_iovs(rows=[row])


def prune():
    return prune_history(limit=Limit(keep=1))


@pytest.mark.parametrize("case", ["never recorded", "present", "past", "delete"])
def test_rows_that_a_clone_begins_to_share_are_not_deleted_meanwhile(api, build, case):
    payload_list = build.list(build.tag("base"))
    build.iov(payload_list, (0, 0), url="first")
    if case != "never recorded":
        add_row(payload_list, 10)
    revision = GlobalTag.objects.get().revision if case in ("past", "delete") else None
    if revision is not None:
        add_row(payload_list, 5)
    as_of = None if revision is None else AsOf(revision=revision)
    path = "payloadiovs/?gtName={}&majorIOV=7&minorIOV=0"
    before = api.get(path.format("base") + (f"&rev={revision}" if revision else "")).ok()
    with ThreadPoolExecutor() as pool:
        # The clone has read the rows, but waits until its change is recorded.
        with held(CHANGE_OF_THE_CLONE):
            cloning = later(pool, lambda: global_tags.clone_global_tag(source="base", target="copy", as_of=as_of))
            if case == "delete":
                other = later(pool, lambda: global_tags.delete_global_tag(name="base", keep_history=False))
            else:
                other = later(pool, lambda: add_row(payload_list, 6))
            pruned = later(pool, prune)
        for future in (cloning, other, pruned):
            assert not isinstance(future.result(), Exception), future.result()
    prune()
    assert api.get(path.format("copy")).ok() == before
    assert find_incorrect_counts() == [] == find_history_faults()


KILL = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%raised AS (%'
"""


def test_a_first_write_to_shared_rows_that_is_killed_changes_nothing(api, build):
    payload_list = build.list(build.tag("base"))
    for start in range(3):
        build.iov(payload_list, (start, 0))
    global_tags.clone_global_tag(source="base", target="copy")
    copied = PayloadList.objects.get(global_tag__name="copy")
    paths = ("payloadiovs/?gtName=copy&majorIOV=7&minorIOV=0", "payload-iovs/range?gtName=copy", "globalTag/copy")
    before = [api.get(path).content for path in paths]
    # Writers take weaker locks, until they raise the revision: then the rows are copied.
    lock = 'SELECT FROM "GlobalTag" WHERE name = %s FOR NO KEY UPDATE'
    with ThreadPoolExecutor(1) as pool, held(lock, "copy"), connection.cursor() as cursor:
        writing = later(pool, lambda: add_row(copied, 5))
        assert [api.get(path).content for path in paths] == before
        while not cursor.execute(KILL) and not cursor.rowcount:
            assert not writing.done()
            time.sleep(0.05)
        assert isinstance(writing.result(), CdbError)
    copied.refresh_from_db()
    assert [api.get(path).content for path in paths] == before and copied.base_list_id == payload_list.id
    add_row(copied, 5)
    assert api.get(paths[0]).ok()[0][1] == "later"


def test_writers_to_different_lists_of_a_tag_do_not_wait_for_each_other(build, monkeypatch, settings):
    settings.CDB_LOCK_TIMEOUT_SECONDS = 2
    tag = build.tag()
    slow, quick = build.list(tag, "Slow"), build.list(tag, "Quick")
    iovs = [build.iov(None, (number, 0)) for number in range(2)]
    arrived, go_on = threading.Event(), threading.Event()
    record = Changes.record

    def record_later(changes, *arguments):
        """One writer has written all of its rows, and waits with the revision."""
        if threading.current_thread().name.startswith("slow"):
            arrived.set()
            assert go_on.wait(10)
        return record(changes, *arguments)

    monkeypatch.setattr(Changes, "record", record_later)
    with ThreadPoolExecutor(1, thread_name_prefix="slow") as pool:
        waiting = pool.submit(attach_and_close, slow, iovs[0])
        assert arrived.wait(10)
        payload_iovs.attach_payload_iov(payload_list=quick.name, iov_id=iovs[1].id)
        assert PayloadList.objects.get(id=quick.id).iov_count == 1
        go_on.set()
        waiting.result()
    tag.refresh_from_db()
    assert (tag.payload_iov_count, tag.revision) == (2, 2)


def attach_and_close(payload_list, iov):
    try:
        return payload_iovs.attach_payload_iov(payload_list=payload_list.name, iov_id=iov.id)
    finally:
        connection.close()


def test_a_tag_that_is_written_to_all_the_time_can_be_locked(build):
    lists = [
        build.list(build.tag("busy") if number == 0 else GlobalTag.objects.get(), f"T{number}") for number in range(4)
    ]
    locked = threading.Event()

    def write_on(number):
        """Until the tag is locked, or after very many rows."""
        for major in range(400):
            if locked.is_set():
                return True
            row = {
                "payload_url": f"{number}",
                "payload_list": lists[number % 4].name,
                "major_iov": major,
                "minor_iov": number,
            }
            bulk.insert_payload_iovs(rows=[row])
        return False

    def lock():
        while PayloadIOV.objects.count() < 50:
            time.sleep(0.01)
        global_tags.change_status(name="busy", status="locked")
        locked.set()
        return True

    results = together([*[lambda n=n: write_on(n) for n in range(WRITERS)], lock])
    assert results[-1] is True
    # A row that comes after the lock may be refused.
    assert all(result is True or isinstance(result, OverlapError) for result in results), results


def test_repair_and_writers_do_not_block_each_other_for_good(build):
    payload_list = build.list(build.tag())

    def write_on(number):
        for major in range(10):
            row = {"payload_url": "u", "payload_list": payload_list.name, "major_iov": major, "minor_iov": number}
            bulk.insert_payload_iovs(rows=[row])

    def repair():
        for _ in range(10):
            assert repair_faults(origin=Origin("test")) == []

    assert together([*[lambda n=n: write_on(n) for n in range(WRITERS)], repair]) == [None] * (WRITERS + 1)


def test_a_lost_race_is_played_again(build):
    calls = []

    @write
    def loses_twice():
        calls.append(1)
        if len(calls) < 3:
            raise ConcurrentChangeError("lost")
        return "won"

    assert loses_twice() == "won"
