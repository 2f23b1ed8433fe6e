"""Moments of data taking and the intervals between them."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

# The largest 64-bit number; as an end it means "to the end of time".
OPEN = 2**63 - 1


class Mode(StrEnum):
    """How the end of an interval stands on the wire and in the tables."""

    CONTINUOUS = "continuous"  # the first moment that is no longer inside
    DISCRETE = "discrete"  # the last moment that is still inside


class Moment(NamedTuple):
    """A point of data taking: (major, minor), both in 0…2^63-1, compared major first."""

    major: int
    minor: int

    @property
    def combined(self) -> Decimal:
        """major + minor / 10^19, as the tables' combined column has it: exact, being written down and not computed."""
        return Decimal(f"{self.major}.{self.minor:019d}")

    @classmethod
    def from_combined(cls, combined: Decimal) -> "Moment":
        """The moment that a combined column means. The number after the last one of a major is the next major's first."""
        major, _, digits = f"{combined:f}".partition(".")
        minor = int(digits.ljust(19, "0") or 0)
        return cls(int(major), minor) if minor <= OPEN else cls(int(major) + 1, 0)

    def __str__(self) -> str:
        return f"({self.major}, {self.minor})"


# The end of an open interval on the wire and in the tables, which is at the same time the last moment there is.
END_OF_TIME = Moment(OPEN, OPEN)
# The end of an open interval here: after the last moment, so that an open interval is half-open like any other.
AFTER_ALL = Moment(OPEN + 1, 0)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of validity, half-open: `start` is inside, `end` is not. The end of an open one is `AFTER_ALL`.

    Build it from what stands on the wire with `from_wire`.
    """

    start: Moment
    end: Moment

    @classmethod
    def from_wire(cls, start: Moment, end: Moment, mode: Mode) -> "Interval":
        """The interval that `start` and `end` mean in `mode`; it may be empty."""
        if end == END_OF_TIME:
            return cls(start, AFTER_ALL)
        if mode is Mode.DISCRETE:
            end = Moment(end.major, end.minor + 1) if end.minor < OPEN else Moment(end.major + 1, 0)
        return cls(start, end)

    def on_wire(self, mode: Mode) -> tuple[Moment, Moment]:
        """Start and end as they stand on the wire in `mode`; the interval must not be empty.

        In continuous mode an end at the very last moment comes out as open: the wire has no other word for it.
        """
        end = self.end
        if self.is_open:
            return self.start, END_OF_TIME
        if mode is Mode.DISCRETE:
            end = Moment(end.major, end.minor - 1) if end.minor else Moment(end.major - 1, OPEN)
        return self.start, end

    @property
    def is_open(self) -> bool:
        """Whether the interval lasts to the end of time."""
        return self.end == AFTER_ALL

    @property
    def is_empty(self) -> bool:
        """Whether no moment is inside."""
        return self.end <= self.start

    def contains(self, moment: Moment) -> bool:
        """Whether `moment` is inside."""
        return self.start <= moment < self.end

    def overlaps(self, other: "Interval") -> bool:
        """Whether some moment is inside both (neither being empty)."""
        return self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        return f"[{self.start}, {'open' if self.is_open else self.end})"
