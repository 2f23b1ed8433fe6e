"""Lookups in several global tags: for each payload type, the first tag that has a valid payload decides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import orjson

from cdb_rest.lookup.model import LookupQuery, Row, State
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
        if len(self._tags) > 1:
            return self._merge(moment, with_window=with_window)
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
        window = Interval(max(one.start for one in windows), min(one.end for one in windows)) if with_window else None
        return StackResult(tuple(states), orjson.dumps(rows), window)
