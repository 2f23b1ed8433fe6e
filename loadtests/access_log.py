"""Reading nginx's access log: the server's counts and times, for comparison with those of the client."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy

# nginx writes its buffer once a second; twice that is enough.
FLUSH_SECONDS = 2.0
PREFIX = "/api/"


@dataclass(frozen=True)
class AccessLog:
    """The requests to the API in an access log.

    `ends` are the times at which responses were sent, in whole seconds since the epoch. `seconds` are the
    durations in nginx, from the first bytes of the request. `passed_on` is 1 for requests that nginx passed on to
    the service, 0 for others. `statuses` are the HTTP statuses.
    """

    ends: numpy.ndarray
    seconds: numpy.ndarray
    passed_on: numpy.ndarray
    statuses: numpy.ndarray

    def __len__(self) -> int:
        return len(self.ends)

    @classmethod
    def read(cls, path: Path, offset: int = 0, *, count: int = 0) -> "AccessLog":
        """Read the lines from an offset in the file, once there are at least `count` or some seconds have passed.

        An incomplete last line is ignored.
        """
        deadline = time.monotonic() + 2 * FLUSH_SECONDS
        while len(rows := list(_rows(path, offset))) < count and time.monotonic() < deadline:
            time.sleep(0.5)
        return cls(*numpy.array(rows, dtype=float).reshape(-1, 4).T)


def size_of(path: Path) -> int:
    """The offset of the next line; 0 if the file does not exist yet."""
    return path.stat().st_size if path.exists() else 0


def _rows(path: Path, offset: int) -> Iterator[tuple[float, float, bool, int]]:
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
                # The times of upstream servers, which nginx separates with commas and colons; "-" is no response.
                yield end, float(row["request_time"]), bool(row["upstream_response_time"].strip("-,: ")), row["status"]
