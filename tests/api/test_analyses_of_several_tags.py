"""Comparisons, coverage and reasons of several tags, compared with a model in plain Python."""

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
    differences_of,
    first_valid,
    made,
    names,
    of_tags,
    query,
    read_differences,
    steps,
    wire,
)
from tests.api.cached import insert
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)


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


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("global-tags/tag/diff/tag?base_a=", "base_a must not be empty"),
        ("global-tags/tag/diff/tag?base_b=tag&rev_b=1", "rev_b must be given once for each global tag"),
        ("global-tags/tag/diff/tag?rev_a=1&rev_a=2", "rev_a must be given once for each global tag"),
        ("global-tags/tag/diff/tag?rev_a=one", "rev_a must be"),
        ("global-tags/tag/diff/tag?rev_b=1&at_b=2026-01-01", "rev_b and at_b must not be given together"),
        ("global-tags/tag/coverage?base=tag&rev=1", "rev must be given once for each global tag"),
        ("payload-iovs/explain?gtName=tag&gtName=tag&rev=1&majorIOV=1&minorIOV=0", "rev must be given once"),
    ],
)
def test_faults_of_several_tags_name_their_parameter(api, tag, path, message):
    assert message in api.get(path).error(400, "invalid_input")["detail"]


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
