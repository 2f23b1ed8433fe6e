"""The recording of a load test: outcomes of requests, the CSV files into which locust's processes write, and reading them."""

import csv
import os
import socket
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import pandas

OK = "success"
# The status and form were correct, the content was not.
WRONG = "wrong response"
NO_RESPONSE = "no response"
NOT_FOUND = "404"
CLIENT_ERROR = "4xx"
# The service reports overload or an outage; clients retry later.
REFUSED = "504"
SERVER_ERROR = "5xx"
# The generator had too many requests in progress to start this one.
NOT_SENT = "not sent"
# An unexpected exception in the generator itself.
GENERATOR_ERROR = "generator error"
OUTCOMES = (OK, WRONG, NO_RESPONSE, NOT_FOUND, CLIENT_ERROR, REFUSED, SERVER_ERROR, NOT_SENT, GENERATOR_ERROR)
# Outcomes that no load excuses.
FAULTS = (WRONG, CLIENT_ERROR, NOT_FOUND, SERVER_ERROR, GENERATOR_ERROR)
# The method of rows that stand for a whole job.
JOB = "JOB"
DETAIL_LENGTH = 600
# Read once: a step of the wall clock during a test would distort the times of requests.
_ORIGIN = time.time() - time.perf_counter()


def now() -> float:
    """Seconds since the epoch, by a monotonic clock; forked processes share it."""
    return _ORIGIN + time.perf_counter()


def judged(status: int, body: bytes, accepted: Collection[int], check: Callable[[], str | None]) -> tuple[str, str]:
    """The outcome of a response (status 0: none), and for a failure its description.

    A status that is neither accepted nor an error is a wrong response. `check` describes what is wrong with the content of a
    response with an accepted status, or returns None; any exception means that the content has an unexpected form.
    """
    if status not in accepted:
        text = f"status {status}: {body.decode(errors='replace') or 'no body'}"
        by_class = {4: CLIENT_ERROR, 5: SERVER_ERROR}.get(status // 100, WRONG)
        return {0: NO_RESPONSE, 404: NOT_FOUND, 504: REFUSED}.get(status, by_class), text[:DETAIL_LENGTH]
    try:
        fault = check()
    except Exception as unexpected:
        fault = f"not of the expected form: {unexpected!r}: {body[:100]!r}"
    return (WRONG, fault[:DETAIL_LENGTH]) if fault else (OK, "")


class Request(NamedTuple):
    """A request, or a whole job (`method` is then JOB, and `rows` the number of its requests).

    `due`, `begin` and `end` are seconds since the epoch: when the request was due, when it began, and when the last byte of
    its response arrived. `due` and `begin` differ if jobs start at a given rate and the generator is late. `status` is 0
    without a response; `rows` is -1 if the response has no rows.
    """

    due: float
    begin: float
    end: float
    user: str
    name: str
    method: str
    status: int
    outcome: str
    rows: int
    bytes: int
    detail: str


class Writer:
    """The file of this process in the directory of a recording, `requests-<host>-<pid>.csv`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"{socket.gethostname()}-{os.getpid()}"
        # Buffered by line, so that no written row is lost if the process is killed.
        self._file = (directory / f"requests-{name}.csv").open("w", buffering=1, newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        self._rows.writerow(Request._fields)
        self._complete = directory / f"complete-{name}"
        # With the web UI, a process can run several tests. Each overwrites the last one's files in the same directory.
        self._complete.unlink(missing_ok=True)

    def write(self, request: Request) -> None:
        """Add a row."""
        self._rows.writerow(request)

    def close(self) -> None:
        """Close the file and mark the recording of this process as complete."""
        self._file.close()
        self._complete.touch()


def read(directory: Path) -> pandas.DataFrame:
    """All requests and jobs of a recording by the time at which they were due, with the columns of `Request`.

    `due`, `begin` and `end` are seconds since the first one was due. `ms` are the milliseconds from `due` to `end` of the row.
    Raises `ValueError` if there are none.
    """
    kinds = {"user": "category", "name": "category", "method": "category", "outcome": "category", "detail": str}
    files = [file for file in sorted(directory.glob("requests-*.csv")) if file.stat().st_size]
    parts = [pandas.read_csv(file, dtype=kinds, keep_default_na=False, on_bad_lines="skip") for file in files]
    parts = [part for part in parts if len(part)]
    if not parts:
        raise ValueError(f"no request was recorded in {directory}")
    found = pandas.concat(parts, ignore_index=True).sort_values("due", ignore_index=True)
    found["ms"] = (found["end"] - found["due"]) * 1000
    origin = found["due"].iloc[0]
    for column in ("due", "begin", "end"):
        found[column] -= origin
    return found
