"""The statistics of the bench."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from loadtests.content.moments import drawing
from loadtests.reporting.figures import Spread, curves, grouped, number, percentile, ratio, spreads
from loadtests.reporting.result import Target


@pytest.mark.parametrize(("share", "expected"), [(1, 1), (50, 50), (50.1, 51), (95, 95), (99, 99), (100, 100)])
def test_percentile_of_hundred_numbers_is_nearest_rank(share, expected):
    assert percentile(range(100, 0, -1), share) == expected


@given(some.lists(some.integers(-(2**53), 2**53), min_size=1), some.integers(1, 100))
def test_percentile_is_least_value_that_enough_values_do_not_exceed(values, share):
    found = percentile(values, share)
    assert found in values
    assert 100 * sum(value <= found for value in values) >= share * len(values)
    assert 100 * sum(value < found for value in values) < share * len(values)


def test_percentile_and_spread_reject_empty_values():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="no values"):
        Spread.of([])


def test_spread_has_median_and_range():
    assert Spread.of([5, 1, 3, 2]) == Spread(2.5, 1, 5)


ROWS = [{"a": "x", "n": 1, "ms": 5.0}, {"a": "y", "n": 1, "ms": None}, {"a": "x", "n": 2, "ms": 7.0}]


def test_grouped_keeps_order_of_first_occurrence():
    assert grouped(ROWS, "a") == {"x": [ROWS[0], ROWS[2]], "y": [ROWS[1]]}
    assert spreads(ROWS, "a", "ms") == {"x": Spread(6.0, 5.0, 7.0)}
    assert curves(ROWS, "a", "n", "ms") == {"x": [(1, 5.0), (2, 7.0)]}


def test_ratio_with_unknown_operand_is_none():
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
def test_number_formats_three_significant_digits(value, expected):
    assert number(value) == expected


@pytest.mark.parametrize(
    ("value", "at_most", "met"),
    [(2.0, True, True), (2.1, True, False), (2.0, False, True), (1.9, False, False), (None, True, None)],
)
def test_target_is_met_at_its_bound(value, at_most, met):
    assert Target("ratio", value, 2, at_most=at_most).met is met


def test_drawing_repeats_moments_of_same_seed():
    first, again, other = (drawing("random", source=random.Random(seed)) for seed in (1, 1, 2))
    assert [first() for _ in range(3)] == [again() for _ in range(3)] != [other() for _ in range(3)]


def test_percentile_rank_is_not_rounded_up():
    assert percentile(list(range(1, 1001)), 99.9) == 999
