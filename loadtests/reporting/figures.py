"""The statistics and number formats of all reports."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy


def percentile(values: Sequence[float] | numpy.ndarray, share: float) -> float:
    """The smallest value that at least `share` percent of the values do not exceed (nearest rank).

    There is no interpolation, so it is one of the values. Raises `ValueError` without values.
    """
    if not len(values):
        raise ValueError("no values")
    return numpy.sort(values)[place_of(share, len(values))].item()


def place_of(share: float, count: int) -> int:
    """The place, from 0, of a percentile in `count` sorted values, by nearest rank."""
    # Rounded, because 99.9 % of 1,000 is a little more than 999 in binary.
    return max(1, math.ceil(round(share / 100 * count, 9))) - 1


@dataclass(frozen=True)
class Spread:
    """The median, minimum and maximum of the repetitions of a measurement."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """The spread of the values. Raises `ValueError` without values."""
        if not values:
            raise ValueError("no values")
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.low)}–{number(self.high)})"


def grouped(rows: Iterable[dict[str, Any]], *keys: str) -> dict[Any, list[dict[str, Any]]]:
    """The rows by the value of a key, or by the values of several, in the order of the first occurrence."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(itemgetter(*keys)(row), []).append(row)
    return groups


def spreads(rows: Iterable[dict[str, Any]], key: str, column: str) -> dict[Any, Spread]:
    """The spread of the values of a column by the value of a key; rows without a value are left out."""
    known = (row for row in rows if row.get(column) is not None)
    return {name: Spread.of([row[column] for row in group]) for name, group in grouped(known, key).items()}


def ratios_to(found: Mapping[str, Spread], base: str) -> dict[str, float | None]:
    """The median of each spread ÷ that of the one with the name `base`."""
    return {name: ratio(one.median, found[base].median) for name, one in found.items()}


def curves(rows: Iterable[dict[str, Any]], key: str, *columns: str) -> dict[Any, list[tuple]]:
    """The points of a plot, which are the values of columns, by the value of a key; incomplete points are left out."""
    known = (row for row in rows if all(row.get(column) is not None for column in columns))
    return {
        name: [tuple(row[column] for column in columns) for row in group] for name, group in grouped(known, key).items()
    }


def ratio(above: float | None, below: float | None) -> float | None:
    """`above / below`, or None if either is None or `below` is 0."""
    return above / below if above is not None and below else None


def number(value: float | None) -> str:
    """A number as readable text: three significant digits, thousands separated; a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"
