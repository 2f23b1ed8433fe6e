"""Axes and lanes of timelines, compared with exact fractions and with the model of a strict lookup."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.analysis.contents import read_contents
from cdb_rest.rules.moment import Interval, Moment
from cdb_web.axis import Axis
from cdb_web.bulk import bulk
from cdb_web.lanes import lane
from tests.api.analysis_model import LAWS, MODES, ROWS, make, steps, valid
from tests.builders import Builder, emptied
from tests.profiles import examples

SMALL = st.builds(Moment, st.integers(0, 5), st.integers(0, 5))
WIDTHS = st.integers(1, 40)
WINDOWS = st.tuples(SMALL, SMALL).filter(lambda pair: pair[0] < pair[1]).map(lambda pair: Interval(*pair))


def position(axis, moment, *, after):
    """The exact position of a moment: at or before it, or at or after it."""
    if axis.major is None:
        number = moment.major + (1 if after and moment.minor else 0)
    else:
        number = moment.minor if moment.major == axis.major else (0 if moment.major < axis.major else axis.last)
    share = Fraction(number - axis.first, axis.last - axis.first)
    return min(max(share, Fraction(0)), Fraction(1)) * axis.width


def kind(rows, moment, mode, until):
    """What a lane has to say about a moment: a payload is valid, there is a gap, or it is outside."""
    if not rows or moment < rows[0][0]:
        return "o"
    if valid(rows, moment, mode):
        return "v"
    return "o" if moment >= until and moment >= rows[-1][0] else "g"


@pytest.mark.django_db(transaction=True)
@settings(max_examples=examples(150), **LAWS)
@given(rows=ROWS, window=WINDOWS, width=WIDTHS, mode=MODES, until=SMALL)
def test_a_lane_shows_every_gap_and_every_change(settings, rows, window, width, mode, until):
    settings.CDB_IOV_MODE = mode.value
    axis = Axis.of(window, width)
    with emptied():
        make("tag", {"A": rows})
        [payload_list] = read_contents([("tag", None)]).lists["A"]
        found = lane(payload_list, axis, until)
    expected = ["v"] * width
    parts = steps([rows, [(until, until)]], axis.window, mode, lambda moment: kind(rows, moment, mode, until))
    # What is outside is drawn below a gap in the same pixel.
    for part, state in sorted(parts, key=lambda part: part[1] == "g"):
        inner = ceil(position(axis, part.start, after=True)), floor(position(axis, part.end, after=False))
        if state == "g" and rows[-1][0] < part.end == until:
            # What follows is outside, so that the last pixel has nothing else.
            inner = inner[0], ceil(position(axis, part.end, after=True))
        if state == "o":
            expected[inner[0] : max(inner)] = ["o"] * max(inner[1] - inner[0], 0)
        if state == "g":
            first = min(floor(position(axis, part.start, after=False)), width - 1)
            last = max(ceil(position(axis, part.end, after=True)), first + 1)
            for pixel in range(first, last):
                expected[pixel] = "g" if pixel in range(*inner) or expected[pixel] == "g" else "p"
    assert found.states == "".join(expected), (rows, window, mode)
    starts = [Moment(*row[0]) for row in rows if axis.window.contains(row[0])]
    changed = {min(floor(position(axis, start, after=False)), width - 1) for start in starts}
    assert {pixel for pixel, count in enumerate(found.changes) if count != "0"} == changed
    last = rows and Interval.from_wire(*rows[-1][:2], mode)
    assert found.is_open == bool(rows and rows[-1][0] < axis.window.end and last.is_open)
    # A row without an end ends with the next one; otherwise, the earlier of the two decides.
    ends = set()
    for row, following in zip(rows, [*rows[1:], None], strict=False):
        end = Interval.from_wire(*row[:2], mode).end
        by_next = following is not None and following[0] < end
        moment = following[0] if by_next else end
        if axis.window.start < moment < axis.window.end:
            ends.add((min(floor(position(axis, moment, after=False)), width - 1), "n" if by_next else "e"))
    shown = {(pixel, end) for pixel, end in enumerate(found.ends) if end != "0"}
    assert shown <= ends | {(width - 1, "e")} and {pixel for pixel, _ in ends} <= {pixel for pixel, _ in shown}


@pytest.mark.django_db(transaction=True)
def test_a_few_far_starts_do_not_spoil_an_axis():
    build = Builder()
    tag = build.tag("tag")
    for number in range(3):
        payload_list = build.list(tag, f"T{number}")
        for major in [*range(50_000 + number, 50_300, 10), *([0, 2**63 - 2] if number == 2 else [])]:
            build.iov(payload_list, (major, 0), (2**63 - 1, 2**63 - 1))
    found = bulk(read_contents([("tag", None)]))
    assert found.window == Interval(Moment(50_000, 0), Moment(50_292, 1))
    assert found.outliers == [(Moment(0, 0), "T2"), (Moment(2**63 - 2, 0), "T2")]
    # Many rows in a few major numbers at the beginning, as of a longer list, are not far.
    payload_list = build.list(build.tag("other"), "T")
    for major, minor in [*((1, minor) for minor in range(9)), *((major, 0) for major in [*range(2, 60), 2**63 - 2])]:
        build.iov(payload_list, (major, minor), (2**63 - 1, 2**63 - 1))
    found = bulk(read_contents([("other", None)]))
    assert (found.window, len(found.outliers)) == (Interval(Moment(1, 0), Moment(59, 1)), 1)
