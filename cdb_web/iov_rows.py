"""Rows of payload lists for the tables of pages: where they really end, and the gaps between them."""

from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.export import Source
from cdb_rest.exports.validity import ValidRow, valid_rows
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment

NEXT_STARTS = named_sql.load("next_starts_of_lists")


class Place(NamedTuple):
    """A moment in a payload list, by the list's id; `number` is that of a change for the state after it, None for the present."""

    list_id: int
    number: int | None
    moment: Moment

    @classmethod
    def of(cls, row: Mapping[str, Any], number: int | None) -> "Place":
        """The start of a row with the columns of the database and `list_id`."""
        return cls(row["list_id"], number, Moment(row["major_iov"], row["minor_iov"]))


def next_starts(places: Sequence[Place]) -> list[Moment]:
    """For each place the next start in the list, `AFTER_ALL` if there is none. One query. Raises `django.db.Error`."""
    parameters = {
        "lists": [place.list_id for place in places],
        "numbers": [place.number for place in places],
        "moments": [place.moment.combined for place in places],
    }
    rows = fetch_all(NEXT_STARTS, parameters) if places else []
    return [AFTER_ALL if start is None else Moment.from_combined(start) for (start,) in rows]


class Rows(NamedTuple):
    """The first rows that are valid somewhere in a window.

    - `leading`: the gap before the first row, None if there is none. Without rows, it is the whole window, or with
      `gap_since` the whole gap.
    - `pairs`: each row with the gap after it, or None. The rows are not cut at the end of the window.
    - `following`: the start of the next row in the window, None if there is none.
    """

    leading: Interval | None
    pairs: list[tuple[ValidRow, Interval | None]]
    following: Moment | None


def read_rows(source: Source, window: Interval, most: int, gap_since: Moment | None = None) -> Rows:
    """At most `most` rows of one payload type. Raises the errors of `valid_rows`, and needs a snapshot as that does.

    `gap_since` is where a gap at the beginning of the window really starts. Without it, the gap starts with the window.
    """
    # They are read beyond the window, to know where the last one ends. Rows are streamed, so the rest is not read.
    rows = list(islice(valid_rows(source, Interval(window.start, AFTER_ALL)), most + 1))
    found = list(takewhile(lambda row: row.part.start < window.end, rows))
    following = found[most].part.start if len(found) > most else None
    ends = [*(row.part.start for row in rows[1:]), AFTER_ALL]
    pairs = [(row, _gap(row.part.end, end)) for row, end in zip(found[:most], ends, strict=False)]
    if gap_since is None:
        return Rows(_gap(window.start, found[0].part.start) if found else window, pairs, following)
    next_start = rows[0].part.start if rows else AFTER_ALL
    return Rows(_gap(gap_since, next_start) if window.start < next_start else None, pairs, following)


def _gap(start: Moment, end: Moment) -> Interval | None:
    return Interval(start, end) if start < end else None
