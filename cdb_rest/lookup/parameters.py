"""What the SQL statements of lookups have in common: their parameters, their count, and the window that they return."""

from decimal import Decimal
from typing import Any

from cdb_rest.lookup.model import LookupQuery
from cdb_rest.observe import metrics
from cdb_rest.rules.moment import AFTER_ALL, Interval, Mode, Moment

BEGINNING = Moment(0, 0)


def parameters_of(query: LookupQuery) -> dict[str, Any]:
    """The parameters of the SQL statements for a query, except for its tag."""
    return {
        "major": query.moment.major,
        "minor": query.moment.minor,
        "only_valid": query.only_valid,
        "inclusive": query.mode is Mode.DISCRETE,
        "as_objects": query.as_objects,
    }


def window_between(since: Moment | None, until: Moment | None) -> Interval:
    """The window of a result; without `since` it begins with time, and without `until` it lasts to the end of time."""
    return Interval(since or BEGINNING, until or AFTER_ALL)


def moment_from(combined: Decimal | None) -> Moment | None:
    """The moment for a combined value, None for null."""
    return None if combined is None else Moment.from_combined(combined)


def count_started() -> None:
    """Count a lookup query that is sent to the database."""
    metrics.LOOKUPS_STARTED.inc()
