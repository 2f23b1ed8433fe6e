"""The axis of a timeline: a window of moments on a number of pixels.

The moments of a major number have the same position if several major numbers are in the window. Otherwise, the axis is
linear in the minor number. The numbers of a moment are 64-bit integers, which JavaScript's numbers cannot hold, so all
arithmetic with them is done here, and a browser gets pixels and texts.
"""

from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from cdb_rest.analysis import spans
from cdb_rest.rules.intervals import Moments
from cdb_rest.rules.moment import OPEN, Interval, Moment

Floats = npt.NDArray[np.float64]
AnyMoments = Moments | spans.Moments
# At most this many labels are on an axis.
MAX_LABELS = 8


@dataclass(frozen=True, slots=True)
class Axis:
    """The window from the number `first` up to `last`, exclusive, on `width` pixels.

    The numbers are major numbers if `major` is None, otherwise the minor numbers of `major`.
    """

    first: int
    last: int
    width: int
    major: int | None = None

    @classmethod
    def of(cls, window: Interval, width: int) -> "Axis":
        """The axis of a window that is not empty. With several major numbers, it is extended to whole ones."""
        start, end = window.start, window.end
        if (end.major, end.minor) == (start.major + 1, 0):
            return cls(start.minor, OPEN + 1, width, start.major)
        if end.major == start.major:
            return cls(start.minor, end.minor, width, start.major)
        return cls(start.major, end.major + (1 if end.minor else 0), width)

    @property
    def window(self) -> Interval:
        """The window of the axis."""
        if self.major is None:
            return Interval(Moment(self.first, 0), Moment(self.last, 0))
        end = Moment(self.major + 1, 0) if self.last == OPEN + 1 else Moment(self.major, self.last)
        return Interval(Moment(self.major, self.first), end)

    def part(self, left: float, right: float) -> "Axis":
        """The axis of the part from `left` to `right`: fractions of the width, below 0 and above 1 outside of it.

        The part is cut at 0 and 2^63, and has at least one number. A part of a single major number is an axis of minor numbers.
        """
        span = self.last - self.first
        limit = OPEN + 1
        # Floats have 53 bits, which is a thousand times more than a screen has pixels.
        first = min(max(self.first + round(span * left), 0), limit - 1)
        last = min(first + max(round(span * (right - left)), 1), limit)
        if self.major is None and last - first == 1:
            return Axis(0, limit, self.width, first)
        return Axis(first, last, self.width, self.major)

    def moment_at(self, pixel: int) -> Moment:
        """The first moment at a pixel."""
        number = self.first + (self.last - self.first) * pixel // self.width
        return Moment(number, 0) if self.major is None else Moment(self.major, number)

    def positions(self, moments: AnyMoments) -> tuple[Floats, Floats]:
        """Two positions of each moment, in pixels from 0 to the width: at or before it, and at or after it.

        They differ for a moment inside of a major number, of which the axis shows only the beginning and the end.
        """
        # Unsigned numbers also hold that of `AFTER_ALL`.
        majors, minors = moments.majors.astype(np.uint64), moments.minors.astype(np.uint64)
        numbers, rest = (majors, minors > 0) if self.major is None else (minors, np.zeros(len(minors), np.bool_))
        span = self.last - self.first
        before = (np.maximum(numbers, np.uint64(self.first)) - np.uint64(self.first)).astype(np.float64)
        # What is before the window begins with it.
        rest &= numbers >= np.uint64(self.first)
        if self.major is not None:
            before[majors < np.uint64(self.major)] = 0
            before[majors > np.uint64(self.major)] = span
        # The division is the last step, so that whole numbers of pixels are exact.
        low, high = (np.clip(part * self.width / span, 0, self.width) for part in (before, before + rest))
        return low, high

    def pixel(self, moment: Moment) -> int:
        """The pixel that contains a moment of the window."""
        number = moment.major if self.major is None else moment.minor
        return (number - self.first) * self.width // (self.last - self.first)

    def labels(self) -> list[tuple[int, str]]:
        """Positions in pixels, with the texts at these positions."""
        span = self.last - self.first
        step = next(
            step for power in count() for digit in (1, 2, 5) if span <= MAX_LABELS * (step := digit * 10**power)
        )
        numbers = range(-(-self.first // step) * step, self.last, step)
        return [((number - self.first) * self.width // span, str(number)) for number in numbers]
