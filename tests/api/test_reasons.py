"""Uses and explanations in the past of a tag, compared with what the API returned at each revision.

A database has one mode for all its time, so each test sets it before it plays a history.
"""

import itertools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.moment import OPEN, Moment
from tests.api.analysis_model import LAWS, MODES, rows_of, valid
from tests.builders import emptied
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)
MOMENT = st.tuples(st.integers(0, 4), st.integers(0, 2))
# With the last moments of majors, after which an inclusive end is in the next major.
MOMENT_OR_LAST = st.one_of(MOMENT, st.tuples(st.integers(0, 4), st.just(OPEN)))
INTERVALS = st.one_of(
    st.tuples(MOMENT, MOMENT_OR_LAST).map(sorted), st.tuples(MOMENT, st.sampled_from(["open", "next"]))
)
INSERT = st.tuples(st.just("insert"), INTERVALS, st.sampled_from("xyz"))
STEPS = st.one_of(
    INSERT,
    st.tuples(st.just("delete"), st.integers(0, 5)),
    st.tuples(st.just("revert"), st.integers(0, 8)),
    st.tuples(st.just("move")),
)
HISTORIES = st.builds(operator.add, st.lists(INSERT, max_size=4), st.lists(STEPS, min_size=1, max_size=6))


def play(api, history):
    """Play the steps, and return the nested tag at each revision."""
    GlobalTagChange.objects.all().delete()
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    seen = {}

    def note():
        seen[int(api.get("globalTag/tag?light").headers["CDB-Revision"])] = api.get("globalTag/tag").ok()

    note()
    for kind, *values in history:
        rows = rows_of(api.get("globalTag/tag").ok()).get("Gain", [])
        if kind == "insert":
            (since, until), url = values
            body = {"global_tag": "tag", "payload_type": "Gain", "payload_url": url, "checksum": f"c{url}"}
            api.post("payload-iovs/insert", body | {"since": since, "until": until})
        elif kind == "delete" and rows:
            start, end, *_ = rows[values[0] % len(rows)]
            api.delete(f"deletePayloadIOV/tag/Gain/{start[0]}/{start[1]}/{end[0]}/{end[1]}").ok()
        elif kind == "revert":
            api.post("global-tags/tag/revert", {"revision": sorted(seen)[values[0] % len(seen)]})
        elif kind == "move":
            # Another list of the same type takes the place of the present one.
            made = api.post("pl", {"payload_type": "Gain"}).ok()["name"]
            api.put("pl_attach", {"global_tag": "tag", "payload_list": made}).ok()
        note()
    return seen


@pytest.fixture
def gain(build):
    build.list(None, "Gain")


INTERVAL = ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")


def intervals_by_id(nested):
    """(id, URL, interval) of each IOV of a nested global tag."""
    return {
        (iov["id"], iov["payload_url"], tuple(iov[column] for column in INTERVAL))
        for payload_list in nested["payload_lists"]
        for iov in payload_list["payload_iov"]
    }


def row(found):
    return found and (found["payload_url"], found["checksum"])


@settings(max_examples=examples(100), **LAWS)
@given(history=HISTORIES, moment=MOMENT_OR_LAST, mode=MODES, data=st.data())
def test_the_reason_is_the_change_after_which_the_payload_was_there(api, gain, settings, history, moment, mode, data):
    settings.CDB_IOV_MODE = mode.value
    with emptied():
        seen = {revision: rows_of(nested).get("Gain", []) for revision, nested in play(api, history).items()}
        asked = data.draw(st.sampled_from([None, *sorted(seen)]))
        # The modes differ at the ends of rows.
        for at in {Moment(*moment), *(row[1] for rows in seen.values() for row in rows)}:
            check_reason(api, seen, at, asked, mode)


def check_reason(api, seen, moment, asked, mode):
    """The explanation at a moment, in a revision or in the present, is what the rows at each revision say."""
    until = [revision for revision in sorted(seen) if asked is None or revision <= asked]
    values = {revision: (one := valid(seen[revision], moment, mode)) and one[2:] for revision in until}
    value, change, replaced = values[until[-1]], until[0], None
    for before, after in itertools.pairwise(until):
        if values[before] != values[after]:
            change, replaced = after, values[before]
    path = f"payload-iovs/explain?gtName=tag&majorIOV={moment[0]}&minorIOV={moment[1]}&payload_type=Gain"
    [found] = api.get(path if asked is None else f"{path}&rev={asked}").ok()
    assert (found["reason"] == "valid") == (value is not None)
    if value is not None:
        assert row(found["payload_iov"]) == value
    assert row(found["replaced"]) == replaced
    if value is not None or replaced is not None:
        assert found["change"]["revision"] == change
    else:
        assert found["change"] is None


@settings(max_examples=examples(150), **LAWS)
@given(history=HISTORIES, mode=MODES)
def test_the_uses_are_those_of_all_revisions(api, gain, settings, history, mode):
    settings.CDB_IOV_MODE = mode.value
    with emptied():
        seen = {revision: intervals_by_id(nested) for revision, nested in play(api, history).items()}
        revisions = sorted(seen)
        for url in "xyz":
            expected = [(interval, None) for _, name, interval in seen[revisions[-1]] if name == url]
            for before, after in itertools.pairwise(revisions):
                expected += [(interval, after) for _, name, interval in seen[before] - seen[after] if name == url]
            found = [
                (tuple(one[column] for column in INTERVAL), one["removed"] and one["removed"]["revision"])
                for one in api.get(f"payload-iovs/uses?payload_url={url}&removed=1").ok()
                if one["global_tag"] == "tag"
            ]
            assert sorted(found, key=str) == sorted(expected, key=str)
            present = api.get(f"payload-iovs/uses?checksum=c{url}").ok()
            assert all(one["removed"] is None for one in present)
            assert len([one for one in present if one["global_tag"]]) == len(
                [one for one in expected if one[1] is None]
            )
