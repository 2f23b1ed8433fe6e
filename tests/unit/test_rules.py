"""Moments and intervals."""

from hypothesis import given
from hypothesis import strategies as st

from cdb_rest.rules.moment import END_OF_TIME, OPEN, Interval, Mode, Moment

NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from([OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
INTERVALS = st.builds(
    lambda one, other, mode: Interval.from_wire(*sorted([one, other]), mode), MOMENTS, MOMENTS, st.sampled_from(Mode)
)


@given(st.builds(Moment, st.integers(0, OPEN), st.integers(0, OPEN)))
def test_the_combined_moment_is_exact(moment):
    numerator, denominator = moment.combined.as_integer_ratio()
    assert numerator * 10**19 == (moment.major * 10**19 + moment.minor) * denominator


@given(MOMENTS, MOMENTS, MOMENTS, st.sampled_from(Mode))
def test_an_interval_contains_what_its_ends_on_the_wire_mean(start, end, moment, mode):
    inside = moment >= start and (end == END_OF_TIME or moment < end or (mode is Mode.DISCRETE and moment == end))
    assert Interval.from_wire(start, end, mode).contains(moment) == inside


@given(MOMENTS, MOMENTS, st.sampled_from(Mode))
def test_a_moment_on_the_wire_reads_back_the_same(start, end, mode):
    interval = Interval.from_wire(start, end, mode)
    if not interval.is_empty:
        written = interval.on_wire(mode)
        assert Interval.from_wire(*written, mode) == interval
        assert written == (start, end)


def test_in_continuous_mode_an_end_at_the_last_moment_is_written_as_open():
    almost_all = Interval(Moment(0, 0), END_OF_TIME)
    assert almost_all.on_wire(Mode.CONTINUOUS) == (Moment(0, 0), END_OF_TIME)
    assert almost_all.on_wire(Mode.DISCRETE) == (Moment(0, 0), Moment(OPEN, OPEN - 1))


@given(INTERVALS, INTERVALS)
def test_overlap_means_that_some_moment_is_in_both(one, other):
    if one.is_empty or other.is_empty:
        return
    later = max(one.start, other.start)
    assert one.overlaps(other) == other.overlaps(one) == (one.contains(later) and other.contains(later))
