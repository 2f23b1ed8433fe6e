"""Lookups in several global tags and at many moments: for each payload type, the first tag that has a valid payload decides."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import itemgetter
from typing import NamedTuple

import orjson

from cdb_rest.lookup.model import LookupQuery, Row, State, select_rows
from cdb_rest.lookup.queries import reader_of
from cdb_rest.rules.moment import AFTER_ALL, Interval, Moment


@dataclass(frozen=True, slots=True)
class StackResult:
    """The result of a lookup in several tags: the states of the tags, in their order, and the body.

    `window` is an interval around the moment in which the body is the same. It need not be the largest one. It is None
    if the caller did not ask for it.
    """

    states: tuple[State, ...]
    body: bytes
    window: Interval | None


class Stack:
    """One or several global tags in fixed states, for lookups at many moments.

    For each payload type, the row comes from the first tag in which the payload is valid at the moment. If it is valid in
    none of them, a lookup without `only_valid` returns the row of the first tag that has one. With a single tag, the results
    are those of lookups in it.

    `queries` differ in the tag and in the past state only. Their moment is replaced. The constructor and `look_up` need the same
    snapshot, and raise the errors of `look_up_here`.
    """

    def __init__(self, queries: Sequence[LookupQuery]) -> None:
        self._tags = [(query, reader_of(query)) for query in queries]

    def look_up(self, moment: Moment, *, with_window: bool) -> StackResult:
        """The result of the lookup at a moment."""
        payload_types = self._tags[0][0].payload_types
        found = (self._merge if len(self._tags) > 1 else self._look_up)(moment, with_window=with_window)
        return replace(found, body=select_rows(found.body, payload_types)[0]) if payload_types else found

    def _look_up(self, moment: Moment, *, with_window: bool) -> StackResult:
        [(query, look_up)] = self._tags
        found = look_up(replace(query, moment=moment), with_window=with_window)
        return StackResult((found.state,), found.body or b"", found.window)

    def _merge(self, moment: Moment, *, with_window: bool) -> StackResult:
        chosen: dict[str, Row] = {}
        ended: dict[str, Row] = {}
        states: list[State] = []
        windows: list[Interval] = []
        for query, look_up in self._tags:
            # Ended rows are read in any case, because they decide how long the result holds.
            found = look_up(replace(query, moment=moment, only_valid=False, as_objects=False), with_window=with_window)
            states.append(found.state)
            windows += [found.window] if found.window else []
            for row in (Row(*values) for values in orjson.loads(found.body or b"[]")):
                interval = Interval.from_wire(row.since, row.until, query.mode)
                is_valid = interval.contains(moment)
                windows.append(interval if is_valid else Interval(interval.end, AFTER_ALL))
                (chosen if is_valid else ended).setdefault(row.payload_type_name, row)
        first, _ = self._tags[0]
        if not first.only_valid:
            chosen = ended | chosen
        rows = [
            row._asdict() if first.as_objects else list(row) for _, row in sorted(chosen.items(), key=itemgetter(0))
        ]
        window = (
            Interval(max(item.start for item in windows), min(item.end for item in windows)) if with_window else None
        )
        return StackResult(tuple(states), orjson.dumps(rows), window)


# A result is asked for together with its window if the last window contained other moments, and otherwise once in so many
# results: the window costs the database more than the result.
TRIED_EVERY = 16


class Result(NamedTuple):
    """The body of a lookup's response, and the moments that have it, in the order in which they were asked for.

    If an earlier result had the same body, `same_as` is its number, counted from 0, and `body` is None.
    """

    moments: list[Moment]
    body: bytes | None
    same_as: int | None


def look_up_many(stack: Stack, moments: Sequence[Moment]) -> Iterator[Result]:
    """The results at the moments, in the order of their first moments. Equal moments count once.

    A result has all moments that are in its window. So neighbouring moments with the same result have one lookup. The
    memory does not depend on the size of the bodies. Raises the errors of `Stack.look_up`.
    """
    places = {moment: place for place, moment in enumerate(dict.fromkeys(moments))}
    in_order = sorted(places)
    done: set[Moment] = set()
    numbers: dict[bytes, int] = {}
    pause = 0
    for count, moment in enumerate(item for item in places if item not in done):
        pause = max(pause - 1, 0)
        found = stack.look_up(moment, with_window=pause == 0)
        members = [moment]
        if found.window is not None:
            first, last = bisect_left(in_order, found.window.start), bisect_left(in_order, found.window.end)
            members = sorted((item for item in in_order[first:last] if item not in done), key=places.__getitem__)
            pause = 0 if len(members) > 1 else TRIED_EVERY
        done.update(members)
        number = numbers.setdefault(blake2b(found.body, digest_size=16).digest(), count)
        if number < count:
            # Moments have the same result, so that windows are worth their cost.
            pause = 0
        yield Result(members, found.body, None) if number == count else Result(members, None, number)
