"""Differences, affected moments, coverage and reasons of one and of several tags, compared with a model in plain Python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.rules.moment import END_OF_TIME, Interval
from tests.api.analysis_model import (
    LAWS,
    MODES,
    MOMENTS,
    STACKS,
    TAGS,
    WINDOWS,
    differences,
    differences_of,
    first_valid,
    made,
    make,
    names,
    of_tags,
    query,
    read_differences,
    steps,
    union,
    valid,
    wire,
)
from tests.api.helpers import insert
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


NOT_FOUND = {
    "global-tags/tag/diff/none": "global_tag_not_found",
    "global-tags/none/diff/tag": "global_tag_not_found",
    "global-tags/tag/diff/tag?payload_type=none": "payload_type_not_found",
    "global-tags/tag/diff/tag?rev_a=99": "revision_not_found",
    "global-tags/none/coverage": "global_tag_not_found",
    "global-tags/tag/coverage?payload_type=none": "payload_type_not_found",
    "payload-iovs/explain?gtName=none&majorIOV=1&minorIOV=0": "global_tag_not_found",
    "payload-iovs/explain?gtName=tag&majorIOV=1&minorIOV=0&payload_type=none": "payload_type_not_found",
}
# What the error has.
INVALID = {
    "global-tags/tag/diff/tag?by=size": "by",
    "global-tags/tag/diff/tag?since=1": "since",
    "global-tags/tag/diff/tag?rev_a=1&at_a=2026-01-01": "rev_a",
    "payload-iovs/uses": "checksum",
    "payload-iovs/uses?checksum=": "checksum",
    "payload-iovs/uses?checksum=a&payload_url=b": "payload_url",
    "payload-iovs/explain?gtName=tag&majorIOV=1": "minorIOV",
    "global-tags/tag/diff/tag?base_a=": "base_a must not be empty",
    "global-tags/tag/diff/tag?base_b=tag&rev_b=1": "rev_b must be given once for each global tag",
    "global-tags/tag/diff/tag?rev_a=1&rev_a=2": "rev_a must be given once for each global tag",
    "global-tags/tag/diff/tag?rev_a=one": "rev_a must be",
    "global-tags/tag/diff/tag?rev_b=1&at_b=2026-01-01": "rev_b and at_b must not be given together",
    "global-tags/tag/coverage?base=tag&rev=1": "rev must be given once for each global tag",
    "payload-iovs/explain?gtName=tag&gtName=tag&rev=1&majorIOV=1&minorIOV=0": "rev must be given once",
}


def test_faults_get_a_clear_error(api, tag):
    for path, code in NOT_FOUND.items():
        api.get(path).error(404, code)
    for path, message in INVALID.items():
        assert message in api.get(path).error(400, "invalid_input")["detail"], path


def test_faults_of_a_body_get_a_clear_error(api, tag):
    path = "global-tags/tag/affected"
    assert "moments" in api.post(path, {"moments": [[1, 0], [1]]}).error(400, "invalid_input")
    assert "index 1" in str(api.post(path, {"moments": [[1, 0], [1]]}).json)
    assert "momens" in api.post(path, {"momens": []}).error(400, "invalid_input")
    many = [[number, 0] for number in range(100_001)]
    assert "100000" in str(api.post(path, {"moments": many}).error(400, "invalid_input"))
    api.post("global-tags/none/affected", {}).error(404, "global_tag_not_found")
    api.post(path, {"to": {"tag": "none"}}).error(404, "global_tag_not_found")


# Numbers of tags: those of one side of a comparison, in their order.
SIDES = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)


@settings(max_examples=examples(150), **LAWS)
@given(
    tags=st.lists(TAGS, min_size=3, max_size=3),
    a=SIDES,
    b=SIDES,
    mode=MODES,
    window=WINDOWS,
    by=st.sampled_from(["url", "checksum"]),
)
def test_the_differences_of_several_tags_are_those_of_a_model(api, settings, tags, a, b, mode, window, by):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    if inside.is_empty:
        return
    with made(tags):
        expected = differences_of([tags[number] for number in a], [tags[number] for number in b], inside, mode, by)
        path = f"global-tags/tag {a[0]}/diff/tag {b[0]}?by={by}&{query(window)}"
        for side, numbers in (("a", a), ("b", b)):
            path += "".join(f"&base_{side}=tag {number}" for number in numbers[1:])
        assert read_differences(api, path) == expected
        assert api.get(f"{path}&summary=1").ok()["differences"] == len(expected)
        body = {"base": [f"tag {number}" for number in a[1:]], "since": window[0], "until": window[1], "by": by}
        body["to"] = {"tag": f"tag {b[0]}", "base": [f"tag {number}" for number in b[1:]]}
        moments = sorted({tuple(since) for _, since, *_ in expected})
        found = api.post(f"global-tags/tag {a[0]}/affected", body | {"moments": moments}).ok()
        assert sorted(tuple(moment) for group in found["groups"] for moment in group["moments"]) == moments


def test_each_of_several_tags_can_be_read_in_its_past(api, tag, build):
    build.iov(build.list(build.tag("base"), "Gain"), (0, 0), url="base")
    before = api.get("globalTag/tag?light").headers["CDB-Revision"]
    insert(api, "later", [7, 0])
    expected = [("Gain", [7, 0], list(END_OF_TIME), ("first", "c"), ("later", "c"))]
    path = f"global-tags/tag/diff/tag?base_a=base&base_b=base&rev_a={before}&rev_a="
    assert read_differences(api, path) == expected
    assert api.get(path).headers["CDB-Revision"].count(",") == 3
    body = {"base": "base", "from_rev": [int(before), None], "moments": [[6, 0], [7, 5]]}
    assert api.post("global-tags/tag/affected", body).ok()["groups"] == [
        {"payload_types": ["Gain"], "moments": [[7, 5]]}
    ]
    assert api.get(f"global-tags/tag/coverage?base=base&rev={before}&rev=").ok()["complete"] is True
    assert api.get("global-tags/tag/coverage").ok()["complete"] is False
    [found, *more] = api.get(
        f"payload-iovs/explain?gtName=tag&gtName=base&majorIOV=0&minorIOV=0&rev={before}&rev="
    ).ok()
    assert (found["reason"], [one["global_tag"] for one in more]) == ("not_started", ["base"])


@settings(max_examples=examples(100), **LAWS)
@given(tags=STACKS, mode=MODES, window=WINDOWS)
def test_the_gaps_of_several_tags_are_those_of_a_model(api, settings, tags, mode, window):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    if inside.is_empty:
        return
    with made(tags):
        bases = "".join(f"&base={name}" for name in names(tags)[1:])
        found = api.get(f"global-tags/tag 0/coverage?{query(window)}{bases}").ok()["payload_types"]
        assert [one["payload_type"] for one in found] == sorted({name for tag in tags for name in tag}, key=str.encode)
        for one in found:
            lists = [tag.get(one["payload_type"], []) for tag in tags]

            def is_gap(moment, lists=lists):
                return first_valid(lists, moment, mode) == (None, None)

            gaps = [wire(part, mode) for part, empty in steps(lists, inside, mode, is_gap) if empty]
            assert [[gap["since"], gap["until"]] for gap in one["gaps"]] == gaps


@settings(max_examples=examples(100), **LAWS)
@given(tags=STACKS, mode=MODES, moment=MOMENTS)
def test_the_reasons_name_the_tags_up_to_the_one_that_decides(api, settings, tags, mode, moment):
    settings.CDB_IOV_MODE = mode.value
    with made(tags):
        found = api.get(f"payload-iovs/explain?{of_tags(tags)}&majorIOV={moment[0]}&minorIOV={moment[1]}").ok()
        expected = []
        for payload_type in sorted({name for tag in tags for name in tag}, key=str.encode):
            lists = [tag.get(payload_type) for tag in tags]
            row, number = first_valid([rows or [] for rows in lists], moment, mode)
            for place, rows in enumerate(lists[: None if number is None else number + 1]):
                if rows is None:
                    reason = "no_payload_list"
                elif place == number:
                    reason = "valid"
                else:
                    reason = "ended" if any(row[0] <= moment for row in rows) else "not_started"
                expected.append((names(tags)[place], payload_type, reason, row[2] if place == number else None))
        assert expected == [
            (
                one["global_tag"],
                one["payload_type"],
                one["reason"],
                one["payload_iov"]["payload_url"] if one["reason"] == "valid" else None,
            )
            for one in found
        ]
