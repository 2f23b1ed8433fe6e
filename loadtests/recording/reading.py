"""Reads a recording back, for whoever makes figures of it."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy

from loadtests.recording.outcome import OK
from loadtests.recording.writer import Request, Sample

JOB = "JOB"


@dataclass(frozen=True)
class Recording:
    """Requests in the order of their beginning, each column an array of the same length.

    `origin` is when the first of all was due, in seconds since the epoch; `due`, `begin` and `end` are seconds after that.
    `users`, `names`, `methods` and `outcomes` are arrays of text, `statuses`, `rows` and `bytes` of integers, as `Request` has
    them. `examples` has for each outcome that is none of success one (name, detail).
    """

    origin: float
    due: numpy.ndarray
    begin: numpy.ndarray
    end: numpy.ndarray
    users: numpy.ndarray
    names: numpy.ndarray
    methods: numpy.ndarray
    statuses: numpy.ndarray
    outcomes: numpy.ndarray
    rows: numpy.ndarray
    bytes: numpy.ndarray
    examples: dict[str, tuple[str, str]]
    samples: tuple[Sample, ...] = ()

    @classmethod
    def read(cls, directory: Path) -> "Recording":
        """All processes' files of a directory. Raises `ValueError` if there is no request."""
        rows = sorted(row for path in sorted(directory.glob("requests-*.csv")) for row in _requests(path))
        if not rows:
            raise ValueError(f"no request was recorded in {directory}")
        columns = Request(*zip(*rows, strict=True))
        times = [numpy.array(column, dtype=float) for column in columns[:3]]
        origin = float(times[0].min())
        examples: dict[str, tuple[str, str]] = {}
        for row in rows:
            if row.outcome != OK and row.method != JOB:
                examples.setdefault(row.outcome, (row.name, row.detail))
        texts = [numpy.array(column) for column in (columns.user, columns.name, columns.method, columns.outcome)]
        numbers = [numpy.array(column, dtype=int) for column in (columns.status, columns.rows, columns.bytes)]
        return cls(
            origin, *(column - origin for column in times), *texts[:3], numbers[0], texts[3], *numbers[1:], examples,
            tuple(sorted(sample for path in sorted(directory.glob("generator-*.csv")) for sample in _samples(path))),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.due)

    def where(self, chosen: numpy.ndarray) -> "Recording":
        """Some of the requests, by an array of booleans; origin, examples and samples stay as they are."""
        columns = (self.due, self.begin, self.end, self.users, self.names, self.methods, self.statuses, self.outcomes)
        kept = [column[chosen] for column in (*columns, self.rows, self.bytes)]
        return Recording(self.origin, *kept, self.examples, self.samples)

    @property
    def requests(self) -> "Recording":
        """Without the rows for whole jobs."""
        return self.where(self.methods != JOB)

    @property
    def jobs(self) -> "Recording":
        """The rows for whole jobs alone."""
        return self.where(self.methods == JOB)

    @property
    def milliseconds(self) -> numpy.ndarray:
        """Response times, from when each request was due, so that a late generator hides nothing."""
        return (self.end - self.due) * 1000


def _requests(path: Path) -> Iterator[Request]:
    for row in _whole_rows(path, len(Request._fields)):
        due, begin, end, user, name, method, status, outcome, rows, size, detail = row
        yield Request(
            float(due), float(begin), float(end), user, name, method, int(status), outcome, int(rows), int(size), detail
        )


def _samples(path: Path) -> Iterator[Sample]:
    for when, cpu, lag, users, in_progress in _whole_rows(path, len(Sample._fields)):
        yield Sample(float(when), float(cpu), float(lag), int(users), int(in_progress))


def _whole_rows(path: Path, length: int) -> Iterator[list[str]]:
    """Rows after the head; the last one may be cut short, where a process was killed."""
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows, None)
        yield from (row for row in rows if len(row) == length)
