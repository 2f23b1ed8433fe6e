"""Differences, affected moments and coverage of global tags, compared with a model in plain Python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.rules.moment import OPEN, Interval, Mode
from tests.api.analysis_model import (
    END,
    LAWS,
    MODES,
    MOMENTS,
    TAGS,
    WINDOWS,
    differences,
    make,
    steps,
    union,
    valid,
    wire,
)
from tests.builders import emptied
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)


@settings(max_examples=examples(100), **LAWS)
@given(a=TAGS, b=TAGS, window=WINDOWS, mode=MODES, moments=st.lists(MOMENTS, max_size=8))
def test_the_affected_moments_are_those_of_a_model(api, settings, a, b, window, mode, moments):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    with emptied():
        make("a", a)
        make("b", b)
        body = {"to": {"tag": "b"}, "since": window[0], "until": window[1]}
        if inside.is_empty:
            api.post("global-tags/a/affected", body).error(400, "invalid_input")
            return
        found = api.post("global-tags/a/affected", body | {"moments": moments}).ok()
        names = sorted({*a, *b}, key=str.encode)

        def differing(moment):
            pairs = {
                name: [valid(tag.get(name, []), moment, mode) for tag in (a, b)]
                for name in names
                if inside.contains(moment)
            }
            return [name for name, (one, other) in pairs.items() if (one and one[2]) != (other and other[2])]

        expected = {}
        for moment in dict.fromkeys(moments):
            if differing(moment):
                expected.setdefault(tuple(differing(moment)), []).append(list(moment))
        assert found == {
            "affected": sum(map(len, expected.values())),
            "groups": [{"payload_types": list(types), "moments": hit} for types, hit in expected.items()],
        }
        found = api.post("global-tags/a/affected", body).ok()
        intervals = [
            interval
            for name in names
            for interval, differs in steps(
                (a.get(name, []), b.get(name, [])), inside, mode, lambda moment, name=name: name in differing(moment)
            )
            if differs
        ]
        assert found == {
            "affected": len(union(intervals)),
            "payload_types": list(dict.fromkeys(one[0] for one in differences(a, b, inside, mode))),
            "intervals": [dict(zip(("since", "until"), wire(one, mode), strict=True)) for one in union(intervals)],
        }


def test_a_complete_tag_says_so(api, build):
    build.iov(build.list(build.tag(), "Gain"), (1, 0))
    assert api.get("global-tags/tag/coverage?since=1,0").ok()["complete"] is True
    assert api.get("global-tags/tag/coverage?since=0,5").ok()["complete"] is False
    assert api.get("global-tags/tag/coverage?since=1,0&required=Gain,Noise").ok()["complete"] is False
    # A required payload type that is there is not reported if another one is asked for.
    found = api.get("global-tags/tag/coverage?since=1,0&payload_type=Gain&required=Gain,Noise,Pedestal").ok()
    assert [one["payload_type"] for one in found["payload_types"]] == ["Gain", "Noise", "Pedestal"]
    api.post("pt", {"name": "Noise"}).ok()
    row = {"global_tag": "tag", "payload_type": "Noise", "payload_url": "u", "checksum": "", "since": [1, 0]}
    api.post("payload-iovs/insert", row | {"until": "open"}).ok()
    found = api.get("global-tags/tag/coverage?since=1,0&payload_type=Gain&required=Gain,Noise").ok()
    assert [one["payload_type"] for one in found["payload_types"]] == ["Gain"] and found["complete"]


def test_the_end_of_a_gap_is_inclusive_in_discrete_mode(api, build, settings):
    settings.CDB_IOV_MODE = Mode.DISCRETE.value
    payload_list = build.list(build.tag(), "Gain")
    build.iov(payload_list, (1, 0), (1, OPEN))
    build.iov(payload_list, (3, 0))
    [found] = api.get("global-tags/tag/coverage?since=1,0").ok()["payload_types"]
    assert found["gaps"] == [{"since": [2, 0], "until": [2, OPEN]}]
    assert found["last_end"] == list(END)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("global-tags/tag/diff/none", "global_tag_not_found"),
        ("global-tags/none/diff/tag", "global_tag_not_found"),
        ("global-tags/tag/diff/tag?payload_type=none", "payload_type_not_found"),
        ("global-tags/tag/diff/tag?rev_a=99", "revision_not_found"),
        ("global-tags/none/coverage", "global_tag_not_found"),
        ("global-tags/tag/coverage?payload_type=none", "payload_type_not_found"),
        ("payload-iovs/explain?gtName=none&majorIOV=1&minorIOV=0", "global_tag_not_found"),
        ("payload-iovs/explain?gtName=tag&majorIOV=1&minorIOV=0&payload_type=none", "payload_type_not_found"),
    ],
)
def test_what_does_not_exist_is_not_found(api, tag, path, code):
    api.get(path).error(404, code)


@pytest.mark.parametrize(
    "path",
    [
        "global-tags/tag/diff/tag?by=size",
        "global-tags/tag/diff/tag?since=1",
        "global-tags/tag/diff/tag?rev_a=1&at_a=2026-01-01",
        "payload-iovs/uses",
        "payload-iovs/uses?checksum=",
        "payload-iovs/uses?checksum=a&payload_url=b",
        "payload-iovs/explain?gtName=tag&majorIOV=1",
    ],
)
def test_faults_get_a_clear_error(api, tag, path):
    api.get(path).error(400, "invalid_input")


def test_faults_of_a_body_get_a_clear_error(api, tag):
    path = "global-tags/tag/affected"
    assert "moments" in api.post(path, {"moments": [[1, 0], [1]]}).error(400, "invalid_input")
    assert "index 1" in str(api.post(path, {"moments": [[1, 0], [1]]}).json)
    assert "momens" in api.post(path, {"momens": []}).error(400, "invalid_input")
    many = [[number, 0] for number in range(100_001)]
    assert "100000" in str(api.post(path, {"moments": many}).error(400, "invalid_input"))
    api.post("global-tags/none/affected", {}).error(404, "global_tag_not_found")
    api.post(path, {"to": {"tag": "none"}}).error(404, "global_tag_not_found")
