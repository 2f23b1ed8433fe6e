"""The faults of the reference service when IOVs are inserted: one test for each, over the API."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from django.db import connection

from cdb_rest.rules.moment import OPEN
from tests.api.helpers import body
from tests.conftest import Api

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gain(build):
    """A list in the unlocked tag `tag`."""
    return build.list(build.tag())


def attach(api, payload_list, start, end=(OPEN, OPEN), url="new"):
    """What a client does to insert: make an IOV, and attach it."""
    names = ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
    iov = api.post("piov", {"payload_url": url, "checksum": ""} | dict(zip(names, (*start, *end), strict=True))).ok()
    return api.put("piov_attach", {"payload_list": payload_list.name, "piov_id": iov["id"]})


def rows(api, payload_list):
    """URL, start and end of each row, by start."""
    return [
        (iov["payload_url"], (iov["major_iov"], iov["minor_iov"]), (iov["major_iov_end"], iov["minor_iov_end"]))
        for iov in api.get(f"pl/{payload_list.id}").ok()["payload_iov"]
    ]


def valid(api, major, minor=0):
    """The URL that is valid at that moment, if any."""
    answer = api.get(f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV={minor}&strict=1").ok()
    return answer[0][1] if answer else None


def test_filling_in_before_the_first_iov_works(api, build, gain):
    build.iov(gain, (10, 0), (20, 0), url="first")
    attach(api, gain, (2, 0), (10, 0)).ok()
    assert rows(api, gain) == [("new", (2, 0), (10, 0)), ("first", (10, 0), (20, 0))]


def test_filling_in_before_the_first_iov_with_a_gap_leaves_the_gap(api, build, gain):
    build.iov(gain, (10, 0), (20, 0), url="first")
    attach(api, gain, (2, 0), (5, 0)).ok()
    assert [valid(api, major) for major in (1, 2, 4, 5, 9, 10)] == [None, "new", "new", None, None, "first"]


def test_filling_a_gap_does_not_stretch_the_next_iov(api, build, gain):
    build.iov(gain, (0, 0), (10, 0), url="before")
    build.iov(gain, (20, 0), (30, 0), url="after")
    attach(api, gain, (12, 0), (15, 0)).ok()
    assert rows(api, gain) == [
        ("before", (0, 0), (10, 0)),
        ("new", (12, 0), (15, 0)),
        ("after", (20, 0), (30, 0)),
    ]


@pytest.mark.parametrize("end", [(5, 0), (20, 0), (OPEN, OPEN)])
def test_an_equal_start_leaves_one_row_with_that_start(api, build, gain, end):
    build.iov(gain, (0, 0), (20, 0), url="old")
    attach(api, gain, (0, 0), end).ok()
    starts = [start for _, start, _ in rows(api, gain)]
    assert len(starts) == len(set(starts)) and valid(api, 0) == "new"
    assert valid(api, 19) == ("old" if end == (5, 0) else "new")


@pytest.mark.parametrize(
    ("start", "end"),
    [((0, 0), (10, 0)), ((5, 0), (15, 0)), ((12, 0), (13, 0)), ((15, 0), (OPEN, OPEN)), ((0, 0), (OPEN, OPEN))],
)
def test_a_locked_tag_accepts_no_overlap(api, build, gain, start, end):
    build.iov(gain, (0, 0), (20, 0), url="old")
    api.put("gt_change_status/tag/locked").ok()
    detail = attach(api, gain, start, end).error(409, "iov_overlap")["detail"]
    assert "(old)" in detail and "[(0, 0), (20, 0))" in detail
    assert rows(api, gain) == [("old", (0, 0), (20, 0))]


def test_a_frozen_tag_can_be_changed_in_no_way(api, build, gain):
    build.iov(gain, (0, 0), (10, 0), url="frozen")
    build.list(gain.global_tag, "Empty")
    other = build.list(build.tag("other"), "Gain")
    spare = build.list(None, "Gain")
    api.put("gt_change_status/tag/frozen").ok()
    before = api.get("globalTag/tag").content
    [frozen] = api.get(f"pl/{gain.id}").json["payload_iov"]
    row = {"payload_url": "b", "payload_list": gain.name, "major_iov": 50, "minor_iov": 0}
    inserted = body(payload_url="b", since=[50, 0])
    empty = api.get("gtPayloadLists/tag").json["Empty"]
    for refused in [
        attach(api, gain, (50, 0)),
        api.post("bulk_piov", [row]),
        api.post("payload-iovs/insert", inserted),
        api.put("pl_attach", {"global_tag": "tag", "payload_list": spare.name}),
        api.put("pl_attach", {"global_tag": "other", "payload_list": gain.name}),
        api.put("piov_attach", {"payload_list": other.name, "piov_id": frozen["id"]}),
        api.put("piov_attach", {"payload_list": spare.name, "piov_id": frozen["id"]}),
        api.delete("deletePayloadIOV/tag/Gain/0/0/10/0"),
        api.delete(f"deletePayloadList/{empty}"),
        api.delete("deleteGlobalTag/tag"),
        *[api.put(f"gt_change_status/tag/{status}") for status in ("unlocked", "locked", "frozen")],
    ]:
        refused.error(409, "global_tag_frozen")
    assert api.get("globalTag/tag").content == before


def test_writers_at_the_same_time_leave_no_overlap_and_no_equal_start(api, gain):
    def write(number):
        try:
            return attach(Api(), gain, (number % 5, 0), (number % 5 + 3, 0), f"new{number}").status
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(write, range(40))) == {200}
    found = rows(api, gain)
    assert len({start for _, start, _ in found}) == len(found)
    assert all(end <= start for (_, _, end), (_, start, _) in pairwise(found))


def test_the_layout_with_major_0_and_the_ends_of_the_range(api, build, gain):
    attach(api, gain, (0, 0), url="all").ok()
    attach(api, gain, (0, OPEN - 1), (0, OPEN), "run").ok()
    attach(api, gain, (OPEN, OPEN), url="last").ok()
    assert [valid(api, *moment) for moment in [(0, OPEN - 2), (0, OPEN - 1), (0, OPEN), (1, 0), (OPEN, OPEN)]] == [
        "all",
        "run",
        "all",
        "all",
        "last",
    ]


def test_a_list_whose_ends_are_all_open_keeps_what_a_later_start_hides(api, build, gain):
    for major in range(0, 50, 10):
        build.iov(gain, (major, 0), url=f"since {major}")
    attach(api, gain, (12, 0), (34, 0)).ok()
    assert rows(api, gain) == [
        ("since 0", (0, 0), (OPEN, OPEN)),
        ("since 10", (10, 0), (12, 0)),
        ("new", (12, 0), (34, 0)),
        ("since 30", (34, 0), (OPEN, OPEN)),
        ("since 40", (40, 0), (OPEN, OPEN)),
    ]
    assert [valid(api, major) for major in (9, 11, 12, 33, 34, 39, 40)] == [
        "since 0",
        "since 10",
        "new",
        "new",
        "since 30",
        "since 30",
        "since 40",
    ]
