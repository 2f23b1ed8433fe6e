"""Which writes wait for which others, and what they find afterwards."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from cdb_rest.maintenance.repair import repair_faults
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.errors import OverlapError
from cdb_rest.rules.origin import Origin
from cdb_rest.writes import bulk, global_tags, payload_iovs
from cdb_rest.writes.change_log import Changes
from tests.writes.concurrency import WRITERS, held, later, together

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
            row = {"payload_url": "u", "payload_list": lists[number % 4].name, "major_iov": major, "minor_iov": number}
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
