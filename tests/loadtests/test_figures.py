"""The statistics of the bench."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from loadtests.client import Response
from loadtests.content.moments import drawing
from loadtests.reporting.figures import Spread, curves, grouped, number, percentile, ratio, spreads
from loadtests.reporting.result import Target


@pytest.mark.parametrize(("share", "expected"), [(1, 1), (50, 50), (50.1, 51), (95, 95), (99, 99), (100, 100)])
def test_percentiles_of_a_hundred_numbers(share, expected):
    assert percentile(range(100, 0, -1), share) == expected


@given(some.lists(some.integers(), min_size=1), some.integers(1, 100))
def test_a_percentile_is_the_least_value_that_enough_others_do_not_exceed(values, share):
    found = percentile(values, share)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= share * len(values)
    assert 100 * sum(value < found for value in values) < share * len(values)


def test_without_values_there_is_no_statistic():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="no values"):
        Spread.of([])


def test_a_spread():
    assert Spread.of([5, 1, 3, 2]) == Spread(2.5, 1, 5)


ROWS = [{"a": "x", "n": 1, "ms": 5.0}, {"a": "y", "n": 1, "ms": None}, {"a": "x", "n": 2, "ms": 7.0}]


def test_rows_are_grouped_in_the_order_of_their_first_occurrence():
    assert grouped(ROWS, "a") == {"x": [ROWS[0], ROWS[2]], "y": [ROWS[1]]}
    assert spreads(ROWS, "a", "ms") == {"x": Spread(6.0, 5.0, 7.0)}
    assert curves(ROWS, "a", "n", "ms") == {"x": [(1, 5.0), (2, 7.0)]}


def test_ratios():
    assert ratio(6, 3) == 2
    assert ratio(6, 0) is None
    assert ratio(None, 3) is None
    assert ratio(3, None) is None
    assert ratio(0, 3) == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (5_200_000, "5,200,000"),
        (0.0, "0"),
        (1234.5, "1,234"),
        (12.345, "12.3"),
        (0.0123456, "0.0123"),
        (-1.5, "-1.50"),
    ],
)
def test_numbers_for_people(value, expected):
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "at_most", "met"),
    [(2.0, True, True), (2.1, True, False), (2.0, False, True), (1.9, False, False), (None, True, None)],
)
def test_targets(value, at_most, met):
    assert Target("ratio", value, 2, at_most=at_most).met is met


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('db;dur=1.234;desc="1 query", render;dur=0.1, total;dur=2.3', 1.234),
        ('total;dur=2.3, db;desc="1 query";dur=7', 7.0),
        ("nodb;dur=3, db;dur=4", 4.0),
    ],
)
def test_the_time_of_the_database_is_read_from_the_header(header, expected):
    assert Response(200, {"server-timing": header}, b"").database == expected


def test_moments_are_the_same_for_the_same_seed():
    first, again, other = (drawing("random", source=random.Random(seed)) for seed in (1, 1, 2))
    assert [first() for _ in range(3)] == [again() for _ in range(3)] != [other() for _ in range(3)]


def test_a_rank_is_not_one_too_high_by_rounding():
    assert percentile(list(range(1, 1001)), 99.9) == 999
