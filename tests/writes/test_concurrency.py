"""Concurrent writers with real transactions on separate connections."""

import pytest

from cdb_rest.maintenance.counts import find_incorrect_counts
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.errors import CdbError
from cdb_rest.writes import bulk, global_tags, payload_iovs, payload_lists
from tests.writes.concurrency import WRITERS, together

pytestmark = pytest.mark.django_db(transaction=True)


def test_disjoint_intervals_attached_together_all_win(build):
    tag = build.tag()
    lists = [build.list(tag, f"Type{number}") for number in range(3)]
    iovs = [build.iov(None, (number, 0), (number + 1, 0)) for number in range(2 * WRITERS)]
    results = together(
        [
            lambda number=number, iov=iov: payload_iovs.attach_payload_iov(
                payload_list=lists[number % 3].name, iov_id=iov.id
            )
            for number, iov in enumerate(iovs)
        ]
    )
    assert all(isinstance(result, payload_iovs.Attachment) for result in results), results
    assert find_incorrect_counts() == []
    assert GlobalTag.objects.get().payload_iov_count == 2 * WRITERS


def test_lists_of_one_type_attached_together_leave_one(build):
    tag = build.tag()
    lists = [build.list(None, "Gain") for _ in range(WRITERS)]
    results = together(
        [lambda one=one: payload_lists.attach_payload_list(global_tag=tag.name, payload_list=one.name) for one in lists]
    )
    assert all(isinstance(result, PayloadList | CdbError) for result in results), results
    assert PayloadList.objects.filter(global_tag=tag).count() == 1
    assert find_incorrect_counts() == []


def test_a_clone_is_one_state_of_its_source(build):
    # Each write moves an IOV between two lists of the tag, so every state of it has the same number of them.
    tag = build.tag()
    here, there = build.list(tag, "Here"), build.list(tag, "There")
    for number in range(200):
        build.iov(here, (number, 0), (number + 1, 0))

    def move():
        for iov in PayloadIOV.objects.filter(payload_list=here):
            payload_iovs.attach_payload_iov(payload_list=there.name, iov_id=iov.id)

    def clone(name):
        return global_tags.clone_global_tag(source=tag.name, target=name)

    results = together([move, *[lambda name=name: [clone(f"{name}{n}") for n in range(5)] for name in ("x", "y")]])
    assert not [result for result in results if isinstance(result, Exception)]
    assert {tag.payload_iov_count for tag in GlobalTag.objects.all()} == {200}
    assert find_incorrect_counts() == []


def test_locking_a_tag_waits_for_its_writers_without_a_deadlock(build):
    payload_list = build.list(build.tag("t"))
    iovs = [build.iov(None, (number, 0), (number + 1, 0)) for number in range(WRITERS)]

    def freeze():
        return global_tags.change_status(name="t", status="frozen")

    results = together(
        [lambda iov=iov: payload_iovs.attach_payload_iov(payload_list=payload_list.name, iov_id=iov.id) for iov in iovs]
        + [freeze]
    )
    attached = sum(isinstance(result, payload_iovs.Attachment) for result in results)
    assert isinstance(results[-1], GlobalTag)
    assert (
        GlobalTag.objects.get(name="t").payload_iov_count
        == attached
        == PayloadIOV.objects.filter(payload_list=payload_list).count()
    )


def test_writers_to_several_tags_at_once_do_not_deadlock(build):
    # Each writer has a list of its own in every tag, so that they meet at the tags alone.
    tags = [build.tag(f"tag{number}") for number in range(4)]
    lists = [[build.list(tag, f"Type{number}").name for tag in tags] for number in range(WRITERS)]
    iovs = [build.iov(None, (10**6, 0), (10**6 + 1, 0)).id for _ in range(WRITERS)]

    def order(number):
        return [lists[number][(number + step * (1 if number % 2 else -1)) % 4] for step in range(4)]

    def insert(number):
        rows = [
            {"payload_url": "u", "payload_list": name, "major_iov": major, "minor_iov": 0}
            for name in order(number)
            for major in range(500)
        ]
        return bulk.insert_payload_iovs(rows=rows)

    def steal(number):
        return [
            payload_iovs.attach_payload_iov(payload_list=name, iov_id=iovs[number])
            for _ in range(4)
            for name in order(number)
        ]

    results = together([lambda n=n: (insert if n % 2 else steal)(n) for n in range(WRITERS)])
    assert not [result for result in results if isinstance(result, Exception)]
    assert find_incorrect_counts() == []
