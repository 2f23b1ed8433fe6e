"""Axes and lanes of timelines, compared with exact fractions and with the model of a strict lookup."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.analysis.contents import read_contents
from cdb_rest.rules.intervals import Moments
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment
from cdb_web.axis import Axis
from cdb_web.lanes import extent, lane
from tests.api.analysis_model import LAWS, MODES, ROWS, make, steps, valid
from tests.builders import emptied
from tests.profiles import examples

SMALL = st.builds(Moment, st.integers(0, 5), st.integers(0, 5))
WIDTHS = st.integers(1, 40)
WINDOWS = st.tuples(SMALL, SMALL).filter(lambda pair: pair[0] < pair[1]).map(lambda pair: Interval(*pair))


@given(window=WINDOWS, width=WIDTHS)
def test_an_axis_contains_its_window(window, width):
    axis = Axis.of(window, width)
    assert axis.window.start <= window.start and axis.window.end >= window.end
    assert Axis.of(axis.window, width) == axis
    assert all(axis.window.contains(axis.moment_at(pixel)) for pixel in range(width))


def position(axis, moment, *, after):
    """The exact position of a moment: at or before it, or at or after it."""
    if axis.major is None:
        number = moment.major + (1 if after and moment.minor else 0)
    else:
        number = moment.minor if moment.major == axis.major else (0 if moment.major < axis.major else axis.last)
    share = Fraction(number - axis.first, axis.last - axis.first)
    return min(max(share, Fraction(0)), Fraction(1)) * axis.width


@given(window=WINDOWS, width=WIDTHS, moment=SMALL)
def test_positions_are_exact(window, width, moment):
    axis = Axis.of(window, width)
    low, high = axis.positions(Moments(np.array([moment.major], np.int64), np.array([moment.minor], np.int64)))
    assert (floor(low[0]), ceil(high[0])) == (
        floor(position(axis, moment, after=False)),
        ceil(position(axis, moment, after=True)),
    )


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(150), **LAWS)
@given(rows=ROWS, window=WINDOWS, width=WIDTHS, mode=MODES)
def test_a_lane_shows_every_gap_and_every_change(settings, rows, window, width, mode):
    settings.CDB_IOV_MODE = mode.value
    axis = Axis.of(window, width)
    with emptied():
        make("tag", {"A": rows})
        [payload_list] = read_contents([("tag", None)]).lists["A"]
        found = lane(payload_list, axis)
    expected = ["v"] * width
    for part, is_gap in steps([rows], axis.window, mode, lambda moment: valid(rows, moment, mode) is None):
        if is_gap:
            first = min(floor(position(axis, part.start, after=False)), width - 1)
            last = max(ceil(position(axis, part.end, after=True)), first + 1)
            for pixel in range(first, last):
                full = (
                    ceil(position(axis, part.start, after=True)) <= pixel < floor(position(axis, part.end, after=False))
                )
                expected[pixel] = "g" if full else "p" if expected[pixel] == "v" else expected[pixel]
    assert found.states == "".join(expected), (rows, window, mode)
    starts = [Moment(*row[0]) for row in rows if axis.window.contains(row[0])]
    changed = {min(floor(position(axis, start, after=False)), width - 1) for start in starts}
    assert {pixel for pixel, count in enumerate(found.changes) if count != "0"} == changed


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(100), **LAWS)
@given(rows=ROWS, mode=MODES)
def test_the_extent_has_all_starts_and_ends(settings, rows, mode):
    settings.CDB_IOV_MODE = mode.value
    with emptied():
        make("tag", {"A": rows})
        [payload_list] = read_contents([("tag", None)]).lists["A"]
        found = extent([payload_list])
    if not rows:
        assert found is None
        return
    assert found.start == rows[0][0]
    end = Interval.from_wire(*rows[-1][:2], mode).end
    assert not found.is_empty and all(found.contains(row[0]) for row in rows)
    assert end == AFTER_ALL or found.end >= end
