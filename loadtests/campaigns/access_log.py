"""What nginx wrote down of the requests that it answered: the server's own count and times, to hold the client's against."""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy

# nginx writes what it has collected once a second; twice that is enough.
FLUSH_SECONDS = 2.0
PREFIX = "/api/"


@dataclass(frozen=True)
class AccessLog:
    """Requests for the API: `ends` are when their answers had been sent, in whole seconds since the epoch, `seconds` what nginx
    took for them, from their first bytes on, `upstream` what gunicorn took (not a number where it was not asked), and the HTTP
    `statuses`."""

    ends: numpy.ndarray
    seconds: numpy.ndarray
    upstream: numpy.ndarray
    statuses: numpy.ndarray

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def passed_on(self) -> "AccessLog":
        """Those that gunicorn was asked about."""
        chosen = numpy.isfinite(self.upstream)
        return AccessLog(self.ends[chosen], self.seconds[chosen], self.upstream[chosen], self.statuses[chosen])

    @classmethod
    def read(cls, path: Path, offset: int = 0) -> "AccessLog":
        """The lines from a place in the file on; one that is being written is left out."""
        rows = list(_rows(path, offset))
        ends, seconds, upstream, statuses = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(
            numpy.array(ends, dtype=float), numpy.array(seconds, dtype=float), numpy.array(upstream, dtype=float),
            numpy.array(statuses, dtype=int),
        )  # fmt: skip

    @classmethod
    def grown(cls, path: Path, offset: int, count: int) -> "AccessLog":
        """The same when it has at least so many requests, or after some seconds as it is."""
        deadline = time.monotonic() + 2 * FLUSH_SECONDS
        while True:
            log = cls.read(path, offset)
            if len(log) >= count or time.monotonic() > deadline:
                return log
            time.sleep(0.5)


def size_of(path: Path) -> int:
    """Where the next line will begin; 0 if there is no file yet."""
    return path.stat().st_size if path.exists() else 0


def _rows(path: Path, offset: int) -> Iterator[tuple[float, float, float, int]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        file.seek(offset)
        for line in file:
            if not line.endswith(b"\n"):
                return
            row = json.loads(line)
            if row["uri"].startswith(PREFIX):
                end = datetime.fromisoformat(row["time"]).timestamp()
                yield end, row["request_time"], _seconds(row["upstream_response_time"]), row["status"]


def _seconds(text: str) -> float:
    """nginx has a time for each server that it tried, with commas and colons between them, and a hyphen for none."""
    words = [word for word in text.replace(":", ",").replace(" ", "").split(",") if word not in ("", "-")]
    return sum(map(float, words)) if words else math.nan
