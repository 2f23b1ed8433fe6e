"""The IOVs of a global tag in a range of moments, compared with models in plain Python."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
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
