"""The IOVs of a global tag in a range of moments, compared with models in plain Python."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from tests.api.helpers import insert
from tests.builders import Builder, emptied
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)
parametrize = pytest.mark.parametrize
PATHS = ["payloadiovsrange/", "payloadiovsrange", "payload-iovs/starts/", "payload-iovs/starts"]
NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from([10**9, 2**53 + 1, OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
LISTS = st.lists(st.sets(MOMENTS, max_size=6), min_size=1, max_size=4)
ENDS = st.tuples(st.one_of(NUMBERS, st.just(-1)), st.one_of(NUMBERS, st.just(-1)))


def query(start, end=(-1, -1), tag="tag"):
    values = dict(zip(("startMajorIOV", "startMinorIOV", "endMajorIOV", "endMinorIOV"), (*start, *end), strict=True))
    return "&".join([f"?gtName={tag}", *(f"{name}={value}" for name, value in values.items())])


def starts(document):
    """The names of the lists with the starts of their IOVs."""
    return [(one["name"], [(iov["major_iov"], iov["minor_iov"]) for iov in one["payload_iov"]]) for one in document]


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck), deadline=None)
@given(lists=LISTS, start=MOMENTS, end=ENDS)
def test_the_iovs_are_those_of_a_model(api, lists, start, end):
    last = (end[0], OPEN if end[1] == -1 else end[1]) if end[0] != -1 else (OPEN, OPEN)
    build = Builder()
    tag = build.tag()
    expected = []
    with emptied():
        for number, moments in enumerate(lists):
            made = build.list(tag, f"type {number}")
            for moment in moments:
                build.iov(made, moment)
            if found := sorted(moment for moment in moments if start <= moment <= last):
                expected.append((made.name, found))
        # IOVs of other tags, and of none, are not included.
        build.iov(build.list(build.tag("other")), start)
        build.iov(build.list(), start)
        response = api.get(PATHS[0] + query(start, end))
        if last < start:
            assert "endMajorIOV" in response.error(400, "invalid_input")
        else:
            assert starts(response.ok()) == expected


def test_a_range_is_compared_by_moments_and_not_by_their_halves(api, build):
    made = build.list(build.tag())
    for moment in ((1, 90), (2, 5), (3, 1)):
        build.iov(made, moment)
    assert starts(api.get(PATHS[0] + query((1, 50), (3, 0))).ok()) == [(made.name, [(1, 90), (2, 5)])]


def test_faults_get_a_clear_error(api, tag):
    path, whole = PATHS[0], query((0, 0))
    api.get(path + query((0, 0), tag="missing")).error(404, "global_tag_not_found")
    api.get(path + query((0, 0), tag="")).error(400, "invalid_input")
    for name in ("startMajorIOV", "startMinorIOV", "endMajorIOV", "endMinorIOV"):
        for value in ("", "abc", "-2", str(2**63), None):
            left = "&".join(part for part in whole[1:].split("&") if not part.startswith(name))
            # Without an end of the major number, its minor number does not matter.
            left = left.replace("endMajorIOV=-1", "endMajorIOV=7")
            document = api.get(f"{path}?{left}" + ("" if value is None else f"&{name}={value}")).error(
                400, "invalid_input"
            )
            assert name in document
    # Existing clients may send unknown parameters.
    assert len(api.get(f"{path}{whole}&anything=1").ok()) == 1


def test_the_past_has_the_same_bytes_as_then(api, tag):
    kept = {}
    ranges = [query((0, 0)), query((2, 0), (4, -1)), query((3, 1), (3, 1))]
    for number, moment in enumerate([(2, 0), (4, 7), (3, 1), (2, 0)], 2):
        insert(api, f"url{number}", [*moment])
        revision = int(api.get("globalTag/tag?light").headers["CDB-Revision"])
        kept[revision] = [api.get(PATHS[0] + one).content for one in ranges]
    assert len({tuple(found) for found in kept.values()}) == len(kept)
    for revision, found in kept.items():
        assert [api.get(f"{PATHS[0]}{one}&rev={revision}").content for one in ranges] == found
    api.get(f"{PATHS[0]}{ranges[0]}&rev=99").error(404, "revision_not_found")


ROWS = st.lists(
    st.tuples(MOMENTS, st.one_of(MOMENTS, st.just(Moment(OPEN, OPEN)))), max_size=6, unique_by=lambda row: row[0]
)


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck), deadline=None)
@given(lists=st.lists(ROWS, min_size=1, max_size=3), since=MOMENTS, until=MOMENTS, mode=st.sampled_from(Mode))
def test_the_parts_are_those_of_a_model(api, settings, lists, since, until, mode):
    settings.CDB_IOV_MODE = mode.value
    window = Interval.from_wire(since, until, mode)
    build = Builder()
    tag = build.tag()
    expected = []
    with emptied():
        for number, rows in enumerate(lists):
            made = build.list(tag, f"type {number}")
            intervals = [
                (Interval.from_wire(*row, mode), row)
                for row in sorted(rows)
                if not Interval.from_wire(*row, mode).is_empty
            ]
            for place, (own, row) in enumerate(intervals):
                build.iov(made, *row)
                following = intervals[place + 1][0].start if place + 1 < len(intervals) else AFTER_ALL
                part = Interval(max(own.start, window.start), min(own.end, following, window.end))
                if not part.is_empty:
                    expected.append((f"type {number}", row[0], part))
        response = api.get(f"payload-iovs/range?gtName=tag&since={since[0]},{since[1]}&until={until[0]},{until[1]}")
        if window.is_empty:
            response.error(400, "invalid_input")
            return
        found = [
            (one["payload_type"], (one["major_iov"], one["minor_iov"]), one["since"], one["until"])
            for one in response.ok()
        ]
        assert found == [(kind, start, *map(list, part.on_wire(mode))) for kind, start, part in expected]
        # A strict lookup at the ends of the parts returns the same IOVs.
        for kind, start, part in expected:
            inside = part.on_wire(Mode.DISCRETE)
            for moment in {inside[0], inside[1]}:
                rows = api.get(f"payloadiovs/?gtName=tag&majorIOV={moment[0]}&minorIOV={moment[1]}&strict=1").ok()
                assert [kind, *start] in [[row[0], row[4], row[5]] for row in rows]


def test_the_parts_of_the_past_have_the_same_bytes_as_then(api, tag):
    kept, path = {}, "payload-iovs/range?gtName=tag&since=1,5&until=4,0"
    for number, moment in enumerate([(2, 0), (4, 7), (3, 1), (2, 0)], 2):
        insert(api, f"url{number}", [*moment])
        answer = api.get(path)
        kept[int(answer.headers["CDB-Revision"])] = answer.content
    assert len(set(kept.values())) == len(kept)
    for revision, content in kept.items():
        assert api.get(f"{path}&rev={revision}").content == content
        assert api.get(f"{path}&rev={revision}&payload_type=Gain").content == content
    api.get(f"{path}&payload_type=Noise").error(404, "payload_type_not_found")
    api.get("payload-iovs/range?gtName=missing").error(404, "global_tag_not_found")
    api.get("payload-iovs/range").error(400, "invalid_input")
    api.get(f"{path}&paylod_type=Gain").error(400, "unknown_parameter")
    first = api.get(path)
    assert api.get(path, **{"If-None-Match": first.headers["ETag"]}).status == 304
