"""Moments of data taking, and the ends of intervals of validity."""

import operator
from typing import Any, NamedTuple

from cdb_client.errors import InputError

# The largest signed 64-bit number. Twice, it is an end that means "open".
LARGEST = 2**63 - 1


class Moment(NamedTuple):
    """A moment: (major, minor), for example (run, lumi block), both in 0…2^63-1, ordered by major, then by minor."""

    major: int
    minor: int

    def __str__(self) -> str:
        return "open" if self == OPEN else f"{self.major},{self.minor}"


# The forms in which callers give a moment.
When = Moment | str | int | tuple[int, int] | None
# The end of an open interval.
OPEN = Moment(LARGEST, LARGEST)
FIRST = Moment(0, 0)
# After the last moment: the end of an open interval as `exclusive_end` returns it.
AFTER_ALL = Moment(LARGEST + 1, 0)


def as_moment(major: Any, minor: int = 0) -> Moment:
    """The moment of numbers, of a pair, or of a text: `1234` (minor 0), `1234,5` or `open` (the end of time).

    Raises `InputError`.
    """
    given = (major, minor) if minor else major
    if major == "open":
        return OPEN
    try:
        if isinstance(major, str):
            major = [int(text) for text in major.split(",")]
        if isinstance(major, tuple | list):
            major, minor = major if len(major) > 1 else (*major, minor)
        moment = Moment(operator.index(major), operator.index(minor))
    except (TypeError, ValueError):
        moment = Moment(-1, 0)
    if not (0 <= moment.major <= LARGEST and 0 <= moment.minor <= LARGEST):
        raise InputError(f"A moment is MAJOR, MAJOR,MINOR or open, with numbers from 0 to 2^63-1 (got {given!r}).")
    return moment


def exclusive_end(end: Moment, mode: str) -> Moment:
    """The first moment after an interval with this end, as the service writes it: `mode` is `continuous` or `discrete`."""
    if end == OPEN:
        return AFTER_ALL
    if mode == "discrete":
        return Moment(end.major, end.minor + 1) if end.minor < LARGEST else Moment(end.major + 1, 0)
    return end


def end_of_window(since: Moment, until: Moment, mode: str) -> Moment:
    """The first moment after a window. Raises `InputError` if the window is empty."""
    if (end := exclusive_end(until, mode)) <= since:
        raise InputError(f"The end of a window must be after its beginning (got {since} and {until}).")
    return end


def wire_end(end: Moment, mode: str) -> Moment:
    """The inverse of `exclusive_end`: the end as the service writes it."""
    if end == AFTER_ALL:
        return OPEN
    if mode == "discrete":
        return Moment(end.major, end.minor - 1) if end.minor else Moment(end.major - 1, LARGEST)
    return end
