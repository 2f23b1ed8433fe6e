"""Limits of tags, clearing of intervals, rows that are sent again, and ends of runs: by the API, the command and the page."""

import io
import re

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.models import GlobalTagChange, PayloadIOV
from cdb_rest.rules.access import Role
from cdb_rest.rules.moment import OPEN
from tests.api.helpers import body
from tests.conftest import Api, ServiceClient

pytestmark = pytest.mark.django_db(transaction=True)


def valid(majors):
    """The valid payload at the beginning of each major number, "-" for none."""
    moments = [[major, 0] for major in majors]
    request = {"gtName": "tag", "moments": moments, "strict": True}
    found = dict.fromkeys(majors, "-")
    results = Api().post("payloadiovs/", request).ok()
    for result in results:
        rows = result["rows"] if "rows" in result else results[result["same_as"]]["rows"]
        found |= {major: rows[0][1] for major, _ in result["moments"] if rows}
    return "".join(found.values())


def clear_by_api(since, until):
    end = [int(until.split(",")[0]), "end"] if until.endswith("end") else until if until == "open" else [int(until), 0]
    answer = Api().post(
        "payload-iovs/clear",
        {"global_tag": "tag", "payload_type": "Gain", "since": [since, 0], "until": end, "reason": "why"},
    )
    return answer.json["detail"] if answer.status != 200 else "unchanged" if answer.json["unchanged"] else "done"


def clear_by_command(since, until):
    out = io.StringIO()
    until = until if not until.isdecimal() else f"{until},0"
    arguments = ["--payload-type=Gain", f"--since={since},0", f"--until={until}", "--reason=why"]
    try:
        call_command("clear_iovs", "tag", *arguments, stdout=out)
    except CommandError as error:
        return str(error)
    return "unchanged" if "Cut 0 IOVs" in out.getvalue() else "done"


# Rows, the cleared interval, and what is valid in 0 to 11 then.
CLEARINGS = {
    "in an open row": ("a1-O", 3, "5", "-aa--aaaaaaa"),
    "to the end": ("a1-O", 3, "open", "-aa---------"),
    "to the end of a run": ("a1-O", 3, "4,end", "-aa--aaaaaaa"),
    "a hidden row does not come back": ("a1-O b5-6 c8-O", 5, "6", "-aaaa---cccc"),
    "several rows": ("a1-O b5-6 c8-O", 3, "9", "-aa------ccc"),
    "nothing": ("a1-2 b5-6", 2, "5", "-a---b------"),
}


@pytest.mark.parametrize("way", [clear_by_api, clear_by_command])
@pytest.mark.parametrize("case", CLEARINGS)
def test_no_payload_is_valid_in_a_cleared_interval(stored, way, case):
    before, since, until, expected = CLEARINGS[case]
    stored(before)
    assert way(since, until) == ("unchanged" if case == "nothing" else "done")
    assert valid(range(12)) == expected
    changes = GlobalTagChange.objects.values_list("action", "comment")
    assert list(changes) == ([] if case == "nothing" else [("clear", "why")])
    assert way(since, until) == "unchanged"
    assert GlobalTagChange.objects.count() == len(changes)


@pytest.mark.parametrize("way", [clear_by_api, clear_by_command])
@pytest.mark.parametrize(
    ("status", "closed_until", "since", "reason"),
    [
        ("locked", None, 3, "payload IOVs cannot be removed"),
        ("frozen", None, 3, "is frozen"),
        ("unlocked", [4, 0], 3, "is closed until (4, 0)"),
        ("unlocked", [3, 0], 3, None),
        ("locked", None, 0, "payload IOVs cannot be removed"),
    ],
)
def test_a_clearing_is_refused_where_something_would_change(api, stored, way, status, closed_until, since, reason):
    stored("a1-O")
    if closed_until:
        api.put("global-tags/tag/limits", {"closed_until": closed_until}).ok()
    api.put(f"gt_change_status/tag/{status}").ok()
    found = way(since, "5")
    assert reason in found if reason else found == "done"
    # Where nothing is valid, nothing changes, in every status.
    assert way(0, "1") == "unchanged"


def test_a_clearing_says_what_it_would_do(api, stored):
    stored("a1-O")
    place = {"global_tag": "tag", "payload_type": "Gain", "since": [3, 0], "reason": "why"}
    answer = api.post("payload-iovs/clear?dry_run=1", place | {"until": [5, 0]}).ok()
    assert (answer["dry_run"], answer["unchanged"], answer["revision"]) == (True, False, None)
    assert answer["split"][0]["after"] == [{"since": [1, 0], "until": [3, 0]}, {"since": [5, 0], "until": "open"}]
    assert valid(range(6)) == "-aaaaa"
    for wrong in ({"until": "next"}, {"until": [2, 0]}, {"until": [5, 0], "reason": ""}, {}):
        api.post("payload-iovs/clear", place | wrong).error(400)
    api.post("payload-iovs/clear", place | {"until": "open", "payload_type": "None"}).error(404)
    api.post("payload-iovs/clear", place | {"until": "open", "global_tag": "none"}).error(404, "global_tag_not_found")


def by_limits_api(**values):
    return Api().put("global-tags/tag/limits", values)


def test_limits_are_shown_and_logged(api, stored):
    stored("a1-O")
    assert by_limits_api(closed_until=[5, 0], largest_major=99).ok()["largest_major"] == 99
    assert by_limits_api(accepts_requests=True).ok()["accepts_requests"] is True
    for path in ("globalTag/tag", "globalTag/tag?light", "global-tags/tag/limits"):
        found = api.get(path).ok()
        assert (found["closed_until"], found["largest_major"]) == ([5, 0], 99)
    change = api.get("global-tags/tag/changes/2").ok()
    limits = {"closed_until": [5, 0], "largest_major": 99, "accepts_requests": True}
    assert (change["action"], change["after"]["limits"]) == ("limits", limits)
    by_limits_api(closed_until=[5, 0]).ok()
    assert GlobalTagChange.objects.count() == 2
    assert by_limits_api(largest_major=None).ok()["closed_until"] == [5, 0]
    page = ServiceClient(headers={"Accept": "text/html"}).get("/tags/tag").content.decode()
    assert "Closed until" in page and "<dd>5, 0</dd>" in page
    for wrong in ({}, {"closed_until": 5}, {"largest_major": -1}, {"largest": 5}, {"accepts_requests": 7}):
        by_limits_api(**wrong).error(400)


# Writes beyond the limits: the tag is closed until (5, 0), which tests/histories tries with all writes, and has majors up to 99.
EXCEEDING = {
    "insert": ("POST", "payload-iovs/insert", body(payload_url="x", since=[4, 0], until=[6, 0])),
    "insert a mistyped number": ("POST", "payload-iovs/insert", body(payload_url="x", since=[1000000001, 0])),
    "insert an end beyond": ("POST", "payload-iovs/insert", body(payload_url="x", since=[9, 0], until=[101, 0])),
    "undo": ("POST", "global-tags/tag/changes/3/undo", None),
}
WITHIN = {
    "an end at the limit": ("POST", "payload-iovs/insert", body(payload_url="x", since=[9, 0], until=[100, 0])),
    "an open end": ("POST", "payload-iovs/insert", body(payload_url="x", since=[99, 0], until="open")),
    "the same payload before": (
        "POST",
        "payload-iovs/insert",
        body(payload_url="first", checksum="", since=[3, 0], until=[4, 0]),
    ),
    "later": ("POST", "payload-iovs/insert", body(payload_url="x", since=[5, 0], until=[6, 0])),
}


@pytest.fixture
def limited(api, empty_tag):
    """A tag with limits and an open IOV since 2, which was not there at revision 1."""
    api.put("gt_change_status/tag/locked").ok()
    api.put("gt_change_status/tag/unlocked").ok()
    api.post("payload-iovs/insert", body(payload_url="first", checksum="", since=[2, 0])).ok()
    by_limits_api(closed_until=[5, 0], largest_major=99, accepts_requests=True).ok()


@pytest.mark.parametrize("case", EXCEEDING)
def test_a_write_beyond_a_limit_is_refused(api, limited, case):
    before = GlobalTagChange.objects.count()
    error = api(*EXCEEDING[case]).error(409, "global_tag_limit")
    assert "closed until (5, 0)" in error["detail"] or "largest major number" in error["detail"]
    assert GlobalTagChange.objects.count() == before


@pytest.mark.parametrize("case", WITHIN)
def test_a_write_within_the_limits_is_accepted(api, limited, case):
    api(*WITHIN[case]).ok()


def test_a_limited_tag_is_cloned_and_deleted(api, limited):
    clone = api.post("cloneGlobalTag/tag/copy").ok()["name"]
    found = api.get(f"global-tags/{clone}/limits").ok()
    assert (found["closed_until"], found["largest_major"], found["accepts_requests"]) == (None, 99, False)
    api.delete("deleteGlobalTag/tag").ok()


@pytest.mark.parametrize(
    ("role", "status", "code"),
    [
        (Role.MANAGER, "unlocked", (403, "not_permitted")),
        (Role.ADMINISTRATOR, "unlocked", None),
        (Role.ADMINISTRATOR, "locked", (409, "global_tag_locked")),
    ],
)
@pytest.mark.parametrize("closed_until", [[4, 0], None])
def test_only_an_administrator_opens_an_unlocked_tag_again(
    api, stored, closed, login, role, status, code, closed_until
):
    headers = login(Role.ADMINISTRATOR)
    api.put("global-tags/tag/limits", {"closed_until": [5, 0]}, **headers).ok()
    api.put(f"gt_change_status/tag/{status}", **headers).ok()
    answer = api.put("global-tags/tag/limits", {"closed_until": closed_until}, **login(role))
    assert answer.error(*code) if code else answer.ok()["closed_until"] == closed_until
    # Everybody who manages the tag may close more of it, in every status but frozen.
    api.put("global-tags/tag/limits", {"closed_until": [6, 0]}, **login(Role.MANAGER)).ok()
    api.put("global-tags/tag/limits", {"largest_major": 9}, **login(Role.CONTRIBUTOR)).error(403)


# A row that is sent when a is valid in [1, 9), by the API, and whether it is there already.
AGAIN = {
    "the same": (body(payload_url="a", since=[1, 0], until=[9, 0]), True),
    "a part": (body(payload_url="a", since=[3, 0], until=[4, 0]), True),
    "with less": (body(payload_url="a", checksum="", since=[3, 0], until=[4, 0]), True),
    "more": (body(payload_url="a", since=[1, 0], until=[10, 0]), False),
    "another checksum": (body(payload_url="a", checksum="other", since=[1, 0], until=[9, 0]), False),
    "another size": (body(payload_url="a", size=7, since=[1, 0], until=[9, 0]), False),
    "another revision": (body(payload_url="a", revision=3, since=[1, 0], until=[9, 0]), False),
    "open": (body(payload_url="a", since=[1, 0], until="open"), False),
}


def _columns(row):
    since, until = row["since"], row["until"] if row["until"] != "open" else [OPEN, OPEN]
    payload = {name: row[name] for name in ("payload_url", "checksum", "size", "revision") if name in row}
    return payload | {
        "major_iov": since[0],
        "minor_iov": since[1],
        "major_iov_end": until[0],
        "minor_iov_end": until[1],
    }


@pytest.mark.parametrize("status", ["unlocked", "locked", "frozen"])
@pytest.mark.parametrize("way", ["insert", "bulk"])
@pytest.mark.parametrize("case", AGAIN)
def test_what_is_valid_already_is_no_change(api, build, case, way, status):
    row, is_unchanged = AGAIN[case]
    payload_list = build.list(build.tag(), "Gain")
    iov = build.iov(payload_list, (1, 0), (9, 0), url="a", checksum="ab12", size=5, extra="2")
    api.put(f"gt_change_status/tag/{status}").ok()
    changes = GlobalTagChange.objects.count()
    if way == "bulk":
        answer = api.post("bulk_piov", [_columns(row) | {"payload_list": payload_list.name}])
    else:
        answer = api.post("payload-iovs/insert", row)
    if is_unchanged:
        found = answer.ok()
        assert found["unchanged"]
        assert way == "bulk" or (found["revisions"], found["rows"][0]["added"]["id"]) == ({}, iov.id)
        assert GlobalTagChange.objects.count() == changes
        assert PayloadIOV.objects.filter(payload_list=payload_list).count() == 1
    elif status == "unlocked" and way != "bulk":
        assert not answer.ok()["unchanged"]
    else:
        answer.error(409)


# An end by mode: what the API and files get, and the last valid moment.
ENDS = {
    "continuous": {'[7, "end"]': (7, OPEN), "[7, 0]": (6, OPEN)},
    "discrete": {'[7, "end"]': (7, OPEN), "[7, 0]": (7, 0)},
}


@pytest.mark.parametrize("mode", ENDS)
@pytest.mark.parametrize("until", ENDS["continuous"])
def test_the_end_of_a_run_is_its_last_moment_in_both_modes(api, empty_tag, settings, mode, until):
    settings.CDB_IOV_MODE = mode
    end = [7, "end"] if "end" in until else [7, 0]
    api.post("payload-iovs/insert", body(since=[1, 0], until=end)).ok()
    last = ENDS[mode][until]
    following = (last[0], last[1] + 1) if last[1] < OPEN else (last[0] + 1, 0)
    for (major, minor), count in ((last, 1), (following, 0)):
        assert len(api.get(f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV={minor}&strict=1").ok()) == count


@pytest.mark.parametrize(
    ("mode", "until", "end"),
    [
        ("discrete", "7", (7, OPEN)),
        ("continuous", "7", (7, 0)),
        ("discrete", "7,end", (7, OPEN)),
        ("continuous", "7,end", (8, 0)),
        ("discrete", "7,0", (7, 0)),
    ],
)
def test_the_page_reads_ends_as_people_write_them(api, empty_tag, settings, mode, until, end):
    settings.CDB_IOV_MODE = mode
    client = ServiceClient(headers={"Accept": "text/html"})
    fields = {"kind": "one", "payload_type": "Gain", "payload_url": "u", "since": "1", "until": until}
    page = client.post("/tags/tag/insert", fields).content.decode()
    hidden = dict(re.findall(r'name="(planned|previewed)" value="([^"]*)"', page))
    assert client.post("/tags/tag/insert", fields | hidden | {"store": "1"}).status_code == 303
    iov = PayloadIOV.objects.get()
    assert (iov.major_iov_end, iov.minor_iov_end) == end
