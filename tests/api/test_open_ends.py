"""Ends with the largest minor number in locked tags: in continuous mode they count as open, in discrete mode they end a run."""

import pytest

from cdb_rest.rules.moment import OPEN
from tests.api.helpers import PATH, body, rows

pytestmark = pytest.mark.django_db(transaction=True)
TO_THE_END, IN_MAJOR = (OPEN, OPEN), (0, OPEN)


@pytest.fixture
def append(api):
    """Create an IOV and attach it to the list of the tag, as sPHENIX's client does."""

    def append(minor, end, major=0):
        payload_list = api.get("gtPayloadLists/tag").ok()["Gain"]
        columns = {"major_iov": major, "minor_iov": minor, "major_iov_end": end[0], "minor_iov_end": end[1]}
        iov = api.post("piov", {"payload_url": f"{major}-{minor}", "checksum": "c"} | columns).ok()
        return api.put("piov_attach", {"payload_list": payload_list, "piov_id": iov["id"]})

    return append


@pytest.fixture
def start(api, empty_tag):
    """Begin with one IOV from minor 10 on, and lock the tag."""

    def start(end):
        api.post(PATH, body(payload_url="0-10", since=[0, 10], until=list(end))).ok()
        api.put("gt_change_status/tag/locked").ok()

    return start


def answers(api, *minors):
    found = [api.get(f"payloadiovs/?gtName=tag&majorIOV=0&minorIOV={minor}&strict=1").ok() for minor in minors]
    return [(row[1], (row[4], row[5]), (row[6], row[7])) for [row] in found]


def test_online_running_goes_on_with_the_largest_minor_as_the_end(api, start, append):
    start(IN_MAJOR)
    assert append(20, IN_MAJOR).ok()["trimmed"][0]["after"] == [{"since": [0, 10], "until": [0, 20]}]
    first, second = ("0-10", (0, 10), (0, 20)), ("0-20", (0, 20), IN_MAJOR)
    assert answers(api, 10, 19, 20, OPEN - 1) == [first, first, second, second]
    for minor in (20, 15, 10):
        api.post(PATH, body(since=[0, minor], until=list(IN_MAJOR))).error(409, "iov_overlap")
    assert "only an open IOV is accepted" in append(30, (0, 40)).error(409, "iov_overlap")["detail"]
    api.post(PATH, body(payload_url="0-5", since=[0, 5], until=[0, 10])).ok()
    assert [row[0] for row in rows(api)] == ["0-5", "0-10", "0-20"]


def test_both_spellings_of_open_follow_each_other(api, start, append):
    start(TO_THE_END)
    ends = {20: IN_MAJOR, 30: IN_MAJOR, 40: TO_THE_END, 50: (7, OPEN), 60: IN_MAJOR}
    for minor, end in ends.items():
        [row] = api.post(PATH, body(payload_url=f"0-{minor}", since=[0, minor], until=list(end), dry_run=True)).ok()[
            "rows"
        ]
        assert [cut["after"] for cut in row["trimmed"]] == [[{"since": [0, minor - 10], "until": [0, minor]}]]
        append(minor, end).ok()
    cut = [(f"0-{minor}", (0, minor), (0, minor + 10)) for minor in range(10, 60, 10)]
    assert rows(api) == [*cut, ("0-60", (0, 60), IN_MAJOR)]
    # Bulk rows with such an end follow, too; a later row without an end then keeps to the next start.
    bulk = {"payload_list": api.get("gtPayloadLists/tag").ok()["Gain"], "major_iov": 0, "payload_url": "bulk"}
    api.post("bulk_piov", [bulk | {"minor_iov": 70, "major_iov_end": 0, "minor_iov_end": OPEN}]).ok()
    assert append(10, TO_THE_END, major=1).ok()["trimmed"] == []
    append(80, IN_MAJOR).error(409, "iov_overlap")
    assert rows(api)[-2:] == [("bulk", (0, 70), IN_MAJOR), ("1-10", (1, 10), TO_THE_END)]
