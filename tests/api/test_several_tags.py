"""Requests about several tags, and lookups at many moments, compared with a model in plain Python."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.domain.moment import END_OF_TIME, Interval, Mode, Moment
from cdb_rest.lookup.model import COLUMNS
from cdb_rest.services import global_tags
from tests.api.analysis_model import (
    MODES,
    MOMENTS,
    TAGS,
    WHOLE,
    differences_of,
    first_valid,
    make,
    query,
    read_differences,
    steps,
    valid,
    wire,
)
from tests.api.cached import LOOKUP, insert
from tests.builders import emptied
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)
parametrize = pytest.mark.parametrize
LAWS = {"suppress_health_check": list(HealthCheck), "deadline": None}
STACKS = st.lists(TAGS, min_size=2, max_size=3)


def names(tags):
    return [f"tag {number}" for number in range(len(tags))]


def of_tags(tags):
    return "&".join(f"gtName={name}" for name in names(tags))


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
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)

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


# Numbers of tags: those of one side of a comparison, in their order.
SIDES = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)


@settings(max_examples=examples(150), **LAWS)
@given(
    tags=st.lists(TAGS, min_size=3, max_size=3),
    a=SIDES,
    b=SIDES,
    mode=MODES,
    window=st.one_of(st.just(WHOLE), st.tuples(MOMENTS, MOMENTS)),
    by=st.sampled_from(["url", "checksum"]),
)
def test_the_differences_of_several_tags_are_those_of_a_model(api, settings, tags, a, b, mode, window, by):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    if inside.is_empty:
        return
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)
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
        ("global-tags/tag/diff/tag?base_a=", "base_a must be given with a name"),
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
@given(tags=STACKS, mode=MODES, window=st.one_of(st.just(WHOLE), st.tuples(MOMENTS, MOMENTS)))
def test_the_gaps_of_several_tags_are_those_of_a_model(api, settings, tags, mode, window):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    if inside.is_empty:
        return
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)
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
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)
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


@settings(max_examples=examples(100), **LAWS)
@given(tags=STACKS, mode=MODES, window=st.one_of(st.just(WHOLE), st.tuples(MOMENTS, MOMENTS)))
def test_the_parts_of_several_tags_are_those_of_a_model(api, settings, tags, mode, window):
    settings.CDB_IOV_MODE = mode.value
    inside = Interval.from_wire(*window, mode)
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)
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
            (
                one["payload_type"],
                one["global_tag"],
                [one["major_iov"], one["minor_iov"]],
                one["since"],
                one["until"],
            )
            for one in answer.ok()
        ]


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
    with emptied():
        for name, tag in zip(names(tags), tags, strict=True):
            make(name, tag)
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


def test_moments_with_the_same_result_need_one_lookup(api, build, django_assert_max_num_queries):
    payload_list = build.list(build.tag(), "Gain")
    for major in range(3):
        build.iov(payload_list, (major, 0), url=f"url{major}")
    moments = [[minor % 3, minor] for minor in range(900)]
    with django_assert_max_num_queries(10):
        found = api.post("payload-iovs/query", {"gtName": "tag", "moments": moments}).ok()
    assert [len(one["moments"]) for one in found] == [300, 300, 300]
    assert [one["rows"][0][1] for one in found] == ["url0", "url1", "url2"]
    # A lookup without a window has one moment. If its result has been seen before, the next one is with a window.
    far = [[5, 5], *moments]
    found = api.post("payload-iovs/query", {"gtName": "tag", "moments": far}).ok()
    assert sorted(moment for one in found for moment in one["moments"]) == sorted(far)


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


@pytest.fixture
def two(api, build):
    """The tag patch has Gain from (5, 0) to (6, 0), the tag base Gain and Noise from (1, 0) on."""
    base = build.tag("base")
    build.iov(build.list(base, "Gain"), (1, 0), url="base gain")
    build.iov(build.list(base, "Noise"), (1, 0), url="base noise")
    build.iov(build.list(build.tag("patch"), "Gain"), (5, 0), (6, 0), url="patch gain")


STACK = "payloadiovs/?gtName=patch&gtName=base&majorIOV={}&minorIOV=0"


def test_a_patch_comes_before_its_base(api, two):
    assert [row[1] for row in api.get(STACK.format(5)).ok()] == ["patch gain", "base noise"]
    assert [row[1] for row in api.get(STACK.format(6)).ok()] == ["base gain", "base noise"]
    assert [row[1] for row in api.get(STACK.format(1)).ok()] == ["base gain", "base noise"]
    [row, _] = api.get(STACK.format(5) + "&shape=dict").ok()
    assert list(row) == list(COLUMNS)


def test_the_validators_are_those_of_all_tags(api, two, django_assert_num_queries):
    etag = api.get(STACK.format(5)).headers["ETag"]
    with django_assert_num_queries(2):
        assert api.get(STACK.format(5), **{"If-None-Match": etag}).status == 304
    assert api.get(STACK.format(6)).headers["ETag"] != etag
    for name in ("base", "patch"):
        global_tags.change_status(name=name, status="locked")
        answer = api.get(STACK.format(5), **{"If-None-Match": etag})
        assert answer.status == 200
        etag = answer.headers["ETag"]
    for name in ("base", "patch"):
        assert "immutable" not in api.get(STACK.format(5)).headers["Cache-Control"]
        global_tags.change_status(name=name, status="frozen")
    assert "immutable" in api.get(STACK.format(5)).headers["Cache-Control"]


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


@parametrize(
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
    assert "more than once" in found["detail"]
    etag = api.get("globalTag/tag?light").headers["ETag"]
    api.get(path, **{"If-None-Match": etag}).error(400, "invalid_input")


@pytest.mark.parametrize(
    ("time", "status"),
    [("1009-06-08T17:39:43-18:31", 404), ("2026-01-01T00:00:00%2B23:59", 404), ("0001-01-01T00:00:00%2B01:00", 400)],
)
def test_any_offset_of_a_time_is_accepted(api, tag, time, status):
    """PostgreSQL itself refuses offsets of 16 hours or more."""
    assert api.get(f"global-tags/tag/diff/tag?at_b={time}").status == status
    assert api.get(f"payloadiovs/?gtName=tag&majorIOV=1&minorIOV=0&at={time}").status == status
