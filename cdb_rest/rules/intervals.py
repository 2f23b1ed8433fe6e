"""Arrays of moments and intervals, with the comparisons of `cdb_rest.rules.moment` for all elements at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cdb_rest.rules.moment import OPEN, Mode, Moment

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Moments:
    """An array of moments: arrays of the same length."""

    majors: Integers
    minors: Integers

    def __len__(self) -> int:
        return len(self.majors)

    def __getitem__(self, index: npt.NDArray[Any]) -> "Moments":
        return Moments(self.majors[index], self.minors[index])

    def are_after(self, other: "Moments | Moment") -> Booleans:
        """Which of them are after a moment, or after the one with the same position in an array of the same length."""
        major, minor = other if isinstance(other, Moment) else (other.majors, other.minors)
        found: Booleans = (self.majors > major) | ((self.majors == major) & (self.minors > minor))
        return found

    def latest(self) -> Moment | None:
        """The last one, None if there are none."""
        if not len(self):
            return None
        major = self.majors.max()
        return Moment(int(major), int(self.minors[self.majors == major].max()))

    def earliest(self) -> Moment | None:
        """The first one, None if there are none."""
        if not len(self):
            return None
        major = self.majors.min()
        return Moment(int(major), int(self.minors[self.majors == major].min()))


@dataclass(frozen=True, slots=True)
class Intervals:
    """An array of half-open intervals, which may be empty. `ends` has no meaning where they are open."""

    starts: Moments
    ends: Moments
    are_open: Booleans

    @classmethod
    def from_wire(cls, starts: Moments, ends: Moments, mode: Mode) -> "Intervals":
        """The intervals with these starts and ends in the wire format of `mode`, as `Interval.from_wire`."""
        are_open = (ends.majors == OPEN) & (ends.minors == OPEN)
        if mode is Mode.DISCRETE:
            are_last = ends.minors == OPEN
            # No number overflows, because an open interval has the largest ones.
            majors = ends.majors + (are_last & ~are_open)
            ends = Moments(majors, np.where(are_last, 0, ends.minors + ~are_last))
        return cls(starts, ends, are_open)

    def are_empty(self) -> Booleans:
        """Which of them contain no moment."""
        return ~(self.are_open | self.ends.are_after(self.starts))

    def end_after(self, moment: Moment) -> Booleans:
        """Which of them end after a moment."""
        return self.are_open | self.ends.are_after(moment)

    def cut(self, positions: Integers, moments: Moments) -> "Intervals":
        """The same, but those at some positions end at a moment if they would end later."""
        are_earlier = self.are_open[positions] | self.ends[positions].are_after(moments)
        chosen = positions[are_earlier]
        majors, minors, are_open = self.ends.majors.copy(), self.ends.minors.copy(), self.are_open.copy()
        majors[chosen], minors[chosen] = moments.majors[are_earlier], moments.minors[are_earlier]
        are_open[chosen] = False
        return Intervals(self.starts, Moments(majors, minors), are_open)


def joined(parts: Iterable[Moments]) -> Moments:
    """The moments of several arrays in one; there must be at least one array."""
    parts = list(parts)
    return Moments(np.concatenate([part.majors for part in parts]), np.concatenate([part.minors for part in parts]))
