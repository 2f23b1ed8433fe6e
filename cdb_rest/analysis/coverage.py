"""The coverage of a window by global tags: in which intervals does a payload type have no valid payload?"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.analysis.contents import (
    Contents,
    in_batches,
    interval_between,
    list_parameters,
    lists_of,
    parts_of,
    read_contents,
)
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.export import check_payload_types, window_values
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.moment import OPEN, Interval, Moment

ROWS = named_sql.load("coverage")


@dataclass(frozen=True, slots=True)
class Selection:
    """What to check: one or several tags, payload types or all (empty), a window, and the payload types that must be there."""

    tags: Sequence[TagState]
    payload_types: Collection[str]
    window: Interval
    required: Collection[str] = ()

    def read(self) -> Contents:
        """The contents of the tags, with all payload types. Raises the errors of `read_contents`, also for `payload_types`."""
        contents = read_contents(self.tags)
        check_payload_types(self.payload_types, contents.lists)
        return contents


class TypeCoverage(NamedTuple):
    """The coverage of a window by a payload type.

    `gaps` are the intervals of the window in which a strict lookup has no row, in order. `covered` is the share of the
    window's moments outside of the gaps, from 0 to 1, rounded. `extent` is the interval from the first covered moment to
    the last one, None if there is none. `has_list` is False if no tag has a list of the payload type.
    """

    payload_type: str
    gaps: list[Interval]
    covered: float
    extent: Interval | None
    has_list: bool = True


def coverage(contents: Contents, selection: Selection) -> Iterator[list[TypeCoverage]]:
    """The coverage by each payload type of the selection, in byte order, and then by the required ones that are not there.

    `contents` is what `selection` reads. In a list for each statement. Raises `OverloadedError` or `django.db.Error`.
    """
    window = selection.window
    chosen = contents.only(selection.payload_types) if selection.payload_types else contents
    types = [((len(lists),), sum(version.rows for version in lists), name) for name, lists in chosen.lists.items()]
    for (depth,), names in in_batches(types):
        parameters = list_parameters(names, {"tag": [contents.lists[name] for name in names]}) | window_values(window)
        yield [_coverage(window, *row) for row in fetch_all(_rows(depth), parameters)]
    missing = [name for name in dict.fromkeys(selection.required) if name not in contents.lists]
    yield [TypeCoverage(name, [window], 0.0, None, has_list=False) for name in missing]


@cache
def _rows(depth: int) -> str:
    return ROWS.replace("{lists}", lists_of({"tag": depth})).replace("{parts}", parts_of("tag", depth))


def _coverage(
    window: Interval,
    payload_type: str,
    first: Decimal | None,
    last: Decimal | None,
    length: Decimal | None,
    whole: Decimal | None,
    gaps_since: list[Decimal] | None,
    gaps_until: list[Decimal] | None,
) -> TypeCoverage:
    if first is None or last is None or length is None or whole is None:
        return TypeCoverage(payload_type, [window], 0.0, None)
    extent = interval_between(first, last)
    inner = [interval_between(*pair) for pair in zip(gaps_since or (), gaps_until or (), strict=True)]
    gaps = [Interval(window.start, extent.start), *inner, Interval(extent.end, window.end)]
    covered = Fraction(_moments(length, whole), _number(window.end) - _number(window.start))
    return TypeCoverage(payload_type, [gap for gap in gaps if not gap.is_empty], float(covered), extent)


def _moments(length: Decimal, whole: Decimal) -> int:
    """The number of moments in intervals, from the sums of their lengths and of the lengths' whole numbers."""
    return int(whole) * (OPEN + 1) + int((Fraction(length) - int(whole)) * 10**19)


def _number(moment: Moment) -> int:
    """The number of moments before this one."""
    return moment.major * (OPEN + 1) + moment.minor
