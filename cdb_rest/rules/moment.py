"""Moments of data taking, and intervals of moments."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

# The largest signed 64-bit number. As an end it means that the interval is open.
OPEN = 2**63 - 1


class Mode(StrEnum):
    """The meaning of an interval's end in the wire format and in the tables."""

    CONTINUOUS = "continuous"  # exclusive: the first moment after the interval
    DISCRETE = "discrete"  # inclusive: the last moment of the interval


class Moment(NamedTuple):
    """A moment of data taking: (major, minor), both in 0…2^63-1, ordered by major, then by minor.

    Only `AFTER_ALL` is outside of this range. The range is not checked here.
    """

    major: int
    minor: int

    @property
    def combined(self) -> Decimal:
        """major + minor / 10^19, as in the column `comb_iov`. It is exact, because the digits are not computed."""
        return Decimal(f"{self.major}.{self.minor:019d}")

    @classmethod
    def from_combined(cls, combined: Decimal) -> "Moment":
        """The moment for a combined value.

        For a value between the last moment of a major and the first moment of the next major, it is the latter. In
        discrete mode, the value after an end has this form if the end is the last moment of its major.
        """
        major, _, digits = f"{combined:f}".partition(".")
        minor = int(digits.ljust(19, "0") or 0)
        return cls(int(major), minor) if minor <= OPEN else cls(int(major) + 1, 0)

    def __str__(self) -> str:
        return f"({self.major}, {self.minor})"


# The end of an open interval in the wire format and in the tables. It is also the last moment.
END_OF_TIME = Moment(OPEN, OPEN)
# The end of an open interval in an `Interval`. It is after the last moment, so that open intervals are half-open, too.
AFTER_ALL = Moment(OPEN + 1, 0)


def end_of_major(major: int, mode: Mode) -> Moment:
    """The end, in the wire format of `mode`, of an interval that is valid to the last moment with this major number."""
    if major == OPEN:
        return END_OF_TIME
    return Moment(major + 1, 0) if mode is Mode.CONTINUOUS else Moment(major, OPEN)


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open interval of validity: `start` is inside, `end` is not. The end of an open interval is `AFTER_ALL`.

    `from_wire` creates it from the wire format.
    """

    start: Moment
    end: Moment

    @classmethod
    def from_wire(cls, start: Moment, end: Moment, mode: Mode) -> "Interval":
        """The interval with this start and end in the wire format of `mode`. It may be empty, or end before its start.

        In both modes, it is open if `end` is `END_OF_TIME`.
        """
        if end == END_OF_TIME:
            return cls(start, AFTER_ALL)
        if mode is Mode.DISCRETE:
            end = Moment(end.major, end.minor + 1) if end.minor < OPEN else Moment(end.major + 1, 0)
        return cls(start, end)

    def on_wire(self, mode: Mode) -> tuple[Moment, Moment]:
        """Start and end in the wire format of `mode`. The interval must not be empty.

        In continuous mode, an interval that ends at the last moment becomes an open one, because both have the same form.
        """
        end = self.end
        if self.is_open:
            return self.start, END_OF_TIME
        if mode is Mode.DISCRETE:
            end = Moment(end.major, end.minor - 1) if end.minor else Moment(end.major - 1, OPEN)
        return self.start, end

    @property
    def is_open(self) -> bool:
        """Whether the interval has no end."""
        return self.end == AFTER_ALL

    def counts_as_open(self, mode: Mode) -> bool:
        """Whether protected tags treat the interval as open: it is, or, in continuous mode, its end has the largest minor.

        Clients that always use the same major number write such ends, for example (0, 2^63-1).
        """
        return self.is_open or (mode is Mode.CONTINUOUS and self.end.minor == OPEN)

    @property
    def is_empty(self) -> bool:
        """Whether the interval contains no moment."""
        return self.end <= self.start

    def contains(self, moment: Moment) -> bool:
        """Whether `moment` is in the interval."""
        return self.start <= moment < self.end

    def overlaps(self, other: "Interval") -> bool:
        """Whether the two intervals have a moment in common. Neither may be empty."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"[{self.start}, {'open' if self.is_open else self.end})"


def window_between(since: Moment | None, until: Moment | None) -> Interval:
    """The interval of a lookup's result; without `since` it begins with time, and without `until` it lasts to the end of time."""
    return Interval(since or Moment(0, 0), until or AFTER_ALL)


# All moments.
EVERYTHING = Interval(Moment(0, 0), AFTER_ALL)
