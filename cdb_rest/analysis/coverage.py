"""The coverage of a window by a global tag: in which intervals does a payload type have no valid payload?"""

from collections.abc import Collection, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from cdb_rest import named_sql
from cdb_rest.analysis.contents import Contents, in_batches, interval_between, parts_of
from cdb_rest.connections.reads import fetch_all
from cdb_rest.domain.moment import OPEN, Interval, Moment
from cdb_rest.services.export import window_values

ROWS = named_sql.load("coverage").replace("{parts}", parts_of("list.id", "list.version"))


class TypeCoverage(NamedTuple):
    """The coverage of a window by a payload type.

    `gaps` are the intervals of the window in which a strict lookup has no row, in order. `covered` is the share of the
    window's moments outside of the gaps, from 0 to 1, rounded. `extent` is the interval from the first covered moment to
    the last one, None if there is none. `has_list` is False if the tag has no list of the payload type.
    """

    payload_type: str
    gaps: list[Interval]
    covered: float
    extent: Interval | None
    has_list: bool = True


def coverage(contents: Contents, window: Interval, required: Collection[str] = ()) -> Iterator[list[TypeCoverage]]:
    """The coverage by each payload type of the tag, in byte order, and then by those of `required` that it does not have.

    In a list for each statement. Raises `OverloadedError` or `django.db.Error`.
    """
    for batch in in_batches([(one.rows, (name, one)) for name, one in contents.lists.items()]):
        parameters = window_values(window) | {
            "payload_types": [name for name, _ in batch],
            "lists": [one.id for _, one in batch],
            "versions": [one.past_version for _, one in batch],
        }
        yield [_coverage(window, *row) for row in fetch_all(ROWS, parameters)]
    missing = [name for name in dict.fromkeys(required) if name not in contents.lists]
    yield [TypeCoverage(name, [window], 0.0, None, has_list=False) for name in missing]


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
