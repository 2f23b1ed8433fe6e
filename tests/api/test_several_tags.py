"""Lookups and ranges in several tags and at many moments, compared with a model in plain Python."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode, Moment
from tests.api.analysis_model import (
    LAWS,
    MODES,
    MOMENTS,
    STACKS,
    TAGS,
    WINDOWS,
    made,
    names,
    of_tags,
    query,
    steps,
    valid,
    wire,
)
from tests.api.helpers import LOOKUP, insert
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)


def expected_rows(tags, moment, mode, *, strict):
    """(payload type, URL, start) of each row, in order."""
    found = {}
    for payload_type in sorted({name for tag in tags for name in tag}, key=str.encode):
        lists = [tag.get(payload_type, []) for tag in tags]
        candidates = [row for rows in lists if (row := valid(rows, moment, mode))]
        if not strict:
            candidates += [max(before) for rows in lists if (before := [row for row in rows if row[0] <= moment])]
        if candidates:
            found[payload_type] = candidates[0]
    return [(name, row[2], *row[0]) for name, row in found.items()]


def shortened(rows):
    return [(row[0], row[1], row[4], row[5]) for row in rows]


@settings(max_examples=examples(150), **LAWS)
@given(tags=STACKS, moment=MOMENTS, mode=MODES, strict=st.booleans())
def test_the_first_tag_with_a_valid_row_decides(api, settings, tags, moment, mode, strict):
    settings.CDB_IOV_MODE = mode.value
    with made(tags):

        def look_up(at, **extras):
            more = "".join(f"&{name}=1" for name in extras)
            flag = "&strict=1" if strict else ""
            return api.get(f"payloadiovs/?{of_tags(tags)}&majorIOV={at[0]}&minorIOV={at[1]}{flag}{more}")

        answer = look_up(moment, snap=True)
        assert shortened(answer.ok()) == expected_rows(tags, moment, mode, strict=strict)
        assert answer.headers["CDB-Revision"] == ",".join("0" for _ in tags)
        # In the whole window, the response is the same.
        since, until = (Moment(*map(int, answer.headers[f"CDB-Valid-{end}"].split(","))) for end in ("Since", "Until"))
        window = Interval.from_wire(since, until, mode)
        assert window.contains(moment)
        inside = set(window.on_wire(Mode.DISCRETE))
        if mode is Mode.CONTINUOUS and moment != END_OF_TIME:
            # A window that ends at the very last moment is written like an open one.
            inside.discard(END_OF_TIME)
        assert {look_up(at).content for at in (moment, *inside)} == {answer.content}


@settings(max_examples=examples(100), **LAWS)
@given(tags=STACKS, mode=MODES, window=WINDOWS)
def test_the_parts_of_several_tags_are_those_of_a_model(api, settings, tags, mode, window):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    with made(tags):
        answer = api.get(f"payload-iovs/range?{of_tags(tags)}&{query(window)}")
        if inside.is_empty:
            answer.error(400, "invalid_input")
            return
        expected = []
        for payload_type in sorted({name for tag in tags for name in tag}, key=str.encode):
            lists = [tag.get(payload_type, []) for tag in tags]

            def first(moment, lists=lists):
                found = ((place, valid(rows, moment, mode)) for place, rows in enumerate(lists))
                return next(((place, row) for place, row in found if row), None)

            expected += [
                (payload_type, names(tags)[found[0]], list(found[1][0]), *wire(part, mode))
                for part, found in steps(lists, inside, mode, first)
                if found
            ]
        assert expected == [
            (one["payload_type"], one["global_tag"], [one["major_iov"], one["minor_iov"]], one["since"], one["until"])
            for one in answer.ok()
        ]


def test_each_tag_has_its_own_revision(api, tag):
    insert(api, "second", [1, 0])
    path = "payloadiovs/?gtName=tag&gtName=tag&majorIOV=5&minorIOV=0"
    for revisions, url in (
        ("&rev=2&rev=", "first"),
        ("&rev=&rev=2", "second"),
        ("", "second"),
        ("&rev=2&rev=3", "first"),
    ):
        assert api.get(path + revisions).ok()[0][1] == url
    assert "immutable" in api.get(f"{path}&rev=2&rev=3").headers["Cache-Control"]
    assert api.get(f"{path}&at=2100-01-01").status == 404
    for wrong in ("&rev=2", "&rev=2&rev=3&rev=3", "&rev=a&rev=3", "&rev=2&rev=3&at=2026-01-01", "&gtName="):
        api.get(path + wrong).error(400, "invalid_input")
    api.get(f"{path}&gtName=none").error(404, "global_tag_not_found")
    api.get(path + "&gtName=tag" * 9).error(400, "invalid_input")


@pytest.mark.parametrize(
    "path",
    [
        f"{LOOKUP}&majorIOV=6",
        f"{LOOKUP}&strict=1&strict=1",
        "globalTags?page=1&page=2",
        "globalTag/tag?light&light",
        "payloadiovsrange/?gtName=tag&gtName=tag&startMajorIOV=0&startMinorIOV=0&endMajorIOV=1&endMinorIOV=1",
        "payload-iovs/range?gtName=tag&since=1,0&since=2,0",
        "global-tags/tag/export?format=csv&format=csv",
        "pt?x=1&x=2",
    ],
)
def test_other_parameters_must_not_be_repeated(api, tag, path):
    found = api.get(path).error(400, "invalid_input")
    assert "must be given only once" in found["detail"]
    etag = api.get("globalTag/tag?light").headers["ETag"]
    api.get(path, **{"If-None-Match": etag}).error(400, "invalid_input")


@settings(max_examples=examples(150), **LAWS)
@given(
    tags=st.lists(TAGS, min_size=1, max_size=2),
    moments=st.lists(MOMENTS, max_size=12),
    mode=MODES,
    strict=st.booleans(),
    shape=st.sampled_from(["list", "dict"]),
)
def test_many_lookups_have_the_results_of_single_ones(api, settings, tags, moments, mode, strict, shape):
    settings.CDB_IOV_MODE = mode.value
    with made(tags):
        body = {"gtName": names(tags), "moments": moments, "strict": strict, "shape": shape}
        found = api.post("payload-iovs/query", body).ok()
        bodies = [one["rows"] if "rows" in one else found[one["same_as"]]["rows"] for one in found]
        # Each distinct result comes once, and the moments come in the order of the request.
        distinct = [json.dumps(one["rows"]) for one in found if "rows" in one]
        assert len(distinct) == len(set(distinct))
        order = {moment: place for place, moment in reversed([*enumerate(moments)])}
        places = [[order[tuple(moment)] for moment in one["moments"]] for one in found]
        assert places == sorted(places, key=lambda group: group[0]) and all(group == sorted(group) for group in places)
        results = {tuple(moment): rows for one, rows in zip(found, bodies, strict=True) for moment in one["moments"]}
        assert results.keys() == set(moments)
        for moment, rows in results.items():
            path = f"payloadiovs/?{of_tags(tags)}&majorIOV={moment[0]}&minorIOV={moment[1]}&shape={shape}"
            assert rows == api.get(f"{path}&strict=1" if strict else path).ok()


def test_a_query_of_many_moments_asks_for_the_past(api, tag):
    insert(api, "second", [1, 0])
    body = {"gtName": "tag", "moments": [[5, 0]]}
    for rev, url in ((2, "first"), (3, "second")):
        answer = api.post("payload-iovs/query", body | {"rev": rev})
        assert answer.ok()[0]["rows"][0][1] == url
        assert answer.headers["CDB-Revision"] == str(rev)
    stack = body | {"gtName": ["tag", "tag"], "rev": [2, None]}
    answer = api.post("payload-iovs/query", stack)
    assert answer.ok()[0]["rows"][0][1] == "first"
    assert answer.headers["CDB-Revision"] == "2,3"
    api.post("payload-iovs/query", stack | {"rev": [1]}).error(400, "invalid_input")
    api.post("payload-iovs/query", body | {"gtName": "none"}).error(404, "global_tag_not_found")
    api.post("payload-iovs/query", {"gtName": "none", "moments": []}).error(404, "global_tag_not_found")
    api.post("payload-iovs/query", body | {"stricd": 1}).error(400, "invalid_input")
    api.post("payload-iovs/query", body | {"moments": [[1, 0]] * 10_001}).error(400, "invalid_input")
    many = {"gtName": ["tag"] * 2, "moments": [[n, 0] for n in range(5001)]}
    assert "10000" in api.post("payload-iovs/query", many).error(400, "invalid_input")["detail"]
    assert len(api.post("payload-iovs/query", body | {"moments": [[n, 0] for n in range(10_000)]}).ok()) == 4
