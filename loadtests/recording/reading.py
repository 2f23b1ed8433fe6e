"""Reads a recording back, for whoever makes figures of it."""

import csv
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from loadtests.recording.outcome import OK
from loadtests.recording.rows import Request, Sample

JOB = "JOB"
# Rows are text only so many at a time, because a million of them take gigabytes as that.
BLOCK_ROWS = 50_000
# By so much at most the clocks of generators and of the file system differ.
CLOCKS_SECONDS = 2.0
KINDS = (float, float, float, str, str, str, int, str, int, int)


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
        """All processes' files of a directory. Raises `ValueError` if there is no request, or if they are of several runs."""
        examples: dict[str, tuple[float, str, str]] = {}
        parts = [part for path in sorted(directory.glob("requests-*.csv")) for part in _columns(path, examples)]
        _be_of_one_run(directory, parts)
        if not parts:
            raise ValueError(f"no request was recorded in {directory}")
        columns = [numpy.concatenate(column) for column in zip(*parts, strict=True)]
        del parts
        order = numpy.lexsort(columns[2::-1])
        due, begin, end, users, names, methods, statuses, outcomes, rows, sizes = (column[order] for column in columns)
        return cls(
            float(due[0]), due - due[0], begin - due[0], end - due[0], users, names, methods, statuses, outcomes, rows, sizes,
            {outcome: example[1:] for outcome, example in examples.items()},
            tuple(sorted(sample for path in sorted(directory.glob("generator-*.csv")) for sample in _samples(path))),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.due)

    def where(self, chosen: numpy.ndarray) -> "Recording":
        """Some of the requests, by an array of booleans; origin, examples and samples stay as they are."""
        columns = ("due", "begin", "end", "users", "names", "methods", "statuses", "outcomes", "rows", "bytes")
        return replace(self, **{column: getattr(self, column)[chosen] for column in columns})

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


def _be_of_one_run(directory: Path, parts: list[list[numpy.ndarray]]) -> None:
    """The processes of a run end together: where one had ended in order before others asked for the first time, it was another
    run's, and all figures by time would be nonsense."""
    ended = min((path.stat().st_mtime for path in directory.glob("complete-*.csv")), default=math.inf)
    if any(part[0].min() > ended + CLOCKS_SECONDS for part in parts):
        raise ValueError(f"{directory} has recordings of several runs; each needs a directory of its own")


def _columns(path: Path, examples: dict[str, tuple[float, str, str]]) -> Iterator[list[numpy.ndarray]]:
    """The columns of a file without the details, a block of rows at a time; `examples` keeps of each outcome that is none of
    success the earliest (due, name, detail)."""
    rows = _whole_rows(path, len(Request._fields))
    while block := list(itertools.islice(rows, BLOCK_ROWS)):
        for row in block:
            found = row[7]
            # A job whose requests failed has no detail of its own.
            if (
                found != OK
                and (row[5] != JOB or row[10])
                and (found not in examples or float(row[0]) < examples[found][0])
            ):
                examples[found] = float(row[0]), row[4], row[10]
        columns = list(zip(*block, strict=True))[:10]
        yield [numpy.array(list(map(kind, column))) for column, kind in zip(columns, KINDS, strict=True)]


def _samples(path: Path) -> Iterator[Sample]:
    for when, cpu, lag, users, in_progress in _whole_rows(path, len(Sample._fields)):
        yield Sample(float(when), float(cpu), float(lag), int(users), int(in_progress))


def _whole_rows(path: Path, length: int) -> Iterator[list[str]]:
    """Rows after the head; the last one may be cut short, where a process was killed."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows, None)
        yield from (row for row in rows if len(row) == length)
