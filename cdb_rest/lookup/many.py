"""Lookups at many moments, with each distinct result once."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from cdb_rest.lookup.stack import Stack
from cdb_rest.rules.moment import Moment

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
    for count, moment in enumerate(one for one in places if one not in done):
        pause = max(pause - 1, 0)
        found = stack.look_up(moment, with_window=pause == 0)
        members = [moment]
        if found.window is not None:
            first, last = bisect_left(in_order, found.window.start), bisect_left(in_order, found.window.end)
            members = sorted((one for one in in_order[first:last] if one not in done), key=places.__getitem__)
            pause = 0 if len(members) > 1 else TRIED_EVERY
        done.update(members)
        number = numbers.setdefault(blake2b(found.body, digest_size=16).digest(), count)
        if number < count:
            # Moments have the same result, so that windows are worth their cost.
            pause = 0
        yield Result(members, found.body, None) if number == count else Result(members, None, number)
