"""Moments of data taking, and the ends of intervals of validity."""

from typing import NamedTuple

from cdb_client.errors import InputError

# The largest signed 64-bit number. Twice, it is an end that means "open".
LARGEST = 2**63 - 1


class Moment(NamedTuple):
    """A moment: (major, minor), for example (run, lumi block), both in 0…2^63-1, ordered by major, then by minor."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> "Moment":
        """The moment of `1234` (minor 0), `1234,5` or `open` (the end of time). Raises `InputError`."""
        if text.strip() == "open":
            return OPEN
        major, comma, minor = text.partition(",")
        try:
            return cls.checked(int(major), int(minor) if comma else 0)
        except ValueError:
            raise InputError(
                f"A moment is MAJOR, MAJOR,MINOR or open, with numbers from 0 to 2^63-1 (got {text!r})."
            ) from None

    @classmethod
    def checked(cls, major: int, minor: int) -> "Moment":
        """The moment with these numbers. Raises `InputError` if one is out of range."""
        for number in (major, minor):
            if not 0 <= number <= LARGEST:
                raise InputError(f"The numbers of a moment must be from 0 to 2^63-1 (got {number}).")
        return cls(major, minor)

    def __str__(self) -> str:
        return "open" if self == OPEN else f"{self.major},{self.minor}"


# The end of an open interval.
OPEN = Moment(LARGEST, LARGEST)
FIRST = Moment(0, 0)
# After the last moment: the end of an open interval as `exclusive_end` returns it.
AFTER_ALL = Moment(LARGEST + 1, 0)


def exclusive_end(end: Moment, mode: str) -> Moment:
    """The first moment after an interval with this end, as the service writes it: `mode` is `continuous` or `discrete`."""
    if end == OPEN:
        return AFTER_ALL
    if mode == "discrete":
        return Moment(end.major, end.minor + 1) if end.minor < LARGEST else Moment(end.major + 1, 0)
    return end


def wire_end(end: Moment, mode: str) -> Moment:
    """The inverse of `exclusive_end`: the end as the service writes it."""
    if end == AFTER_ALL:
        return OPEN
    if mode == "discrete":
        return Moment(end.major, end.minor - 1) if end.minor else Moment(end.major - 1, LARGEST)
    return end
