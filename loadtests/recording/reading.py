"""Reading a recording into arrays."""

import csv
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy

from loadtests.recording.outcome import OK, OUTCOMES
from loadtests.recording.rows import JOB, Request, Sample

# Rows are parsed in blocks, because a million rows of text take gigabytes.
BLOCK_ROWS = 50_000
# The largest difference between the clocks of the generator and of the file system.
CLOCKS_SECONDS = 2.0
# The columns of a recording in the order of `Request`, whose `detail` is not read.
KINDS = {"due": float, "begin": float, "end": float, "users": str, "names": str, "methods": str, "statuses": int}
KINDS |= {"outcomes": str, "rows": int, "bytes": int}


@dataclass(frozen=True)
class Recording:
    """The requests and jobs of a run, sorted by due time; each column is an array of the same length.

    `origin` is when the first of all was due, in seconds since the epoch; `due`, `begin` and `end` are seconds
    after `origin`. `users`, `names`, `methods` and `outcomes` are arrays of text, `statuses`, `rows` and
    `bytes` of integers, as in `Request`. `examples` has one (name, detail) for each outcome other than success.
    `samples` are those of the generator, by time.
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
        """Read the files of all processes in a directory.

        Raises `ValueError` if there is no request, or if the files belong to several runs.
        """
        examples: dict[str, tuple[float, str, str]] = {}
        parts = [part for path in sorted(directory.glob("requests-*.csv")) for part in _columns(path, examples)]
        _check_single_run(directory, parts)
        if not parts:
            raise ValueError(f"no request was recorded in {directory}")
        columns = [numpy.concatenate(column) for column in zip(*parts, strict=True)]
        order = numpy.lexsort(columns[2::-1])
        found: dict[str, Any] = dict(zip(KINDS, (column[order] for column in columns), strict=True))
        origin = float(found["due"][0])
        found |= {name: found[name] - origin for name in ("due", "begin", "end")}
        samples = sorted(sample for path in directory.glob("generator-*.csv") for sample in _samples(path))
        first = {outcome: example[1:] for outcome, example in examples.items()}
        return cls(origin, examples=first, samples=tuple(samples), **found)

    def __len__(self) -> int:
        return len(self.due)

    def where(self, chosen: numpy.ndarray) -> "Recording":
        """The requests that an array of booleans selects; origin, examples and samples are unchanged."""
        return replace(self, **{column: getattr(self, column)[chosen] for column in KINDS})

    @property
    def requests(self) -> "Recording":
        """The requests, without the rows of whole jobs."""
        return self.where(self.methods != JOB)

    @property
    def jobs(self) -> "Recording":
        """The rows of whole jobs only."""
        return self.where(self.methods == JOB)

    @property
    def answered(self) -> "Recording":
        """The requests that got a response, with any outcome."""
        return self.where(self.statuses > 0)

    @property
    def failures(self) -> int:
        """The number of rows with another outcome than success."""
        return int((self.outcomes != OK).sum())

    @property
    def milliseconds(self) -> numpy.ndarray:
        """Response times from when each request was due, so that delays of a late generator are included."""
        return (self.end - self.due) * 1000

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows with each outcome, 0 included."""
        return {outcome: int((self.outcomes == outcome).sum()) for outcome in OUTCOMES}


def _check_single_run(directory: Path, parts: list[list[numpy.ndarray]]) -> None:
    """Raise `ValueError` if a process was complete before another one sent its first request.

    The processes of one run end together, so these belong to different runs, and figures by time would be meaningless.
    """
    ended = min((path.stat().st_mtime for path in directory.glob("complete-*.csv")), default=math.inf)
    if any(part[0].min() > ended + CLOCKS_SECONDS for part in parts):
        raise ValueError(f"{directory} has recordings of several runs; each needs a directory of its own")


def _columns(path: Path, examples: dict[str, tuple[float, str, str]]) -> Iterator[list[numpy.ndarray]]:
    """The columns of a file without the details, one block of rows at a time.

    `examples` gets the earliest (due, name, detail) of each outcome other than success.
    """
    rows = map(Request._make, _whole_rows(path, len(Request._fields)))
    while block := list(itertools.islice(rows, BLOCK_ROWS)):
        # A job that failed because of a request has no detail.
        for row in (row for row in block if row.outcome != OK and (row.method != JOB or row.detail)):
            if row.outcome not in examples or float(row.due) < examples[row.outcome][0]:
                examples[row.outcome] = float(row.due), row.name, row.detail
        columns = zip(zip(*block, strict=True), KINDS.values(), strict=False)
        yield [numpy.array(list(map(kind, column))) for column, kind in columns]


def _samples(path: Path) -> Iterator[Sample]:
    for when, cpu, lag, users, in_progress in _whole_rows(path, len(Sample._fields)):
        yield Sample(float(when), float(cpu), float(lag), int(users), int(in_progress))


def _whole_rows(path: Path, length: int) -> Iterator[list[str]]:
    """The rows after the header, without a last row that is incomplete because the process was killed."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows, None)
        yield from (row for row in rows if len(row) == length)
