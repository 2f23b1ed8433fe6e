"""The faults of the reference service when IOVs are inserted: one test for each, over the API."""

import pytest

from cdb_rest.rules.moment import OPEN

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


# Closed rows by their majors: those before, the new one, and what is there then.
FILLED = {
    "up to the first": ({"first": (10, 20)}, (2, 10), "new first"),
    "with a gap before the first": ({"first": (10, 20)}, (2, 5), "new first"),
    "in a gap": ({"before": (0, 10), "after": (20, 30)}, (12, 15), "before new after"),
}


@pytest.mark.parametrize("case", FILLED)
def test_filling_in_changes_no_other_iov(api, build, gain, case):
    before, new, expected = FILLED[case]
    for url, (since, until) in before.items():
        build.iov(gain, (since, 0), (until, 0), url=url)
    attach(api, gain, (new[0], 0), (new[1], 0)).ok()
    majors = before | {"new": new}
    assert rows(api, gain) == [(url, *((major, 0) for major in majors[url])) for url in expected.split()]


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


def test_the_layout_with_major_0_and_the_ends_of_the_range(api, build, gain):
    attach(api, gain, (0, 0), url="all").ok()
    attach(api, gain, (0, OPEN - 1), (0, OPEN), "run").ok()
    attach(api, gain, (OPEN, OPEN), url="last").ok()
    moments = [(0, OPEN - 2), (0, OPEN - 1), (0, OPEN), (1, 0), (OPEN, OPEN)]
    assert [valid(api, *moment) for moment in moments] == ["all", "run", "all", "all", "last"]


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
    found = [valid(api, major) for major in (9, 11, 12, 33, 34, 39, 40)]
    assert found == ["since 0", "since 10", "new", "new", "since 30", "since 30", "since 40"]
