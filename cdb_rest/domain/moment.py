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

    def __str__(self) -> str:
        return f"({self.major}, {self.minor})"


END_OF_TIME = Moment(OPEN, OPEN)


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of validity, half-open: `start` is inside, `end` is not, save that the end of time has no end.

    Build it from what stands on the wire with `from_wire`.
    """

    start: Moment
    end: Moment

    @classmethod
    def from_wire(cls, start: Moment, end: Moment, mode: Mode) -> "Interval":
        """The interval that `start` and `end` mean in `mode`; empty, never negative, where the end is the start."""
        if mode is Mode.DISCRETE and end != END_OF_TIME:
            end = Moment(end.major, end.minor + 1) if end.minor < OPEN else Moment(end.major + 1, 0)
        return cls(start, end)

    @property
    def is_open(self) -> bool:
        """Whether the interval lasts to the end of time."""
        return self.end == END_OF_TIME

    @property
    def is_empty(self) -> bool:
        """Whether no moment is inside."""
        return self.end <= self.start and not self.is_open

    def contains(self, moment: Moment) -> bool:
        """Whether `moment` is inside."""
        return self.start <= moment and (moment < self.end or self.is_open)

    def overlaps(self, other: "Interval") -> bool:
        """Whether some moment is inside both (neither being empty)."""
        return (self.start < other.end or other.is_open) and (other.start < self.end or self.is_open)

    def __str__(self) -> str:
        return f"[{self.start}, {'open' if self.is_open else self.end})"
