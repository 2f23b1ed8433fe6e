"""`python -m loadtests.burst`: thousands of jobs at once, each of which is one lookup, written down as locust's users do.

By the time locust has begun the last of 10,000 requests it has long had answers to the first ones; sockets without any
client around them begin within a fraction of that time.
"""

import argparse
import csv
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from cdb_rest.domain.moment import Moment
from cdb_rest.management.quantities import IN_SECONDS
from loadtests import storm
from loadtests.content.expected import Expected
from loadtests.recording import clock, outcome
from loadtests.recording.reading import JOB, Recording
from loadtests.recording.rows import Request, Sample
from loadtests.service import PREFIX, ServiceError, Settings, run_command
from loadtests.storm import Job, Storm

PATIENCE_SECONDS = 120
USER, NAME = "Burst", "lookup"


def put(host: str, directory: Path, options: dict[str, str]) -> Recording:
    """Run this as a process of its own, with options by their names, and read what it wrote down; so many files as there are jobs
    have to be allowed. Raises `ServiceError` if it fails."""
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = run_command(Settings(directory, {}), "-m", "loadtests.burst", host, str(directory), *words)
    if done.code:
        raise ServiceError(f"the storm failed: {(done.output.strip().splitlines() or ['no output'])[-1]}")
    return Recording.read(directory)


def main(arguments: Sequence[str]) -> int:
    """Answers are held against the scenario (random layout, seed 1), whatever the tag is called. The code is 0 in any case:
    what became of the jobs is told by the recording."""
    parser = argparse.ArgumentParser(prog="python -m loadtests.burst", description="Thousands of lookups at once.")
    parser.add_argument("host", help="such as http://127.0.0.1:8000")
    parser.add_argument("directory", type=Path, help="where the recording goes")
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--scenario", required=True)
    parser.add_argument("--global-tag", required=True)
    parser.add_argument("--major", type=int, required=True)
    parser.add_argument("--minor", type=int, required=True)
    parser.add_argument(
        "--patience", **IN_SECONDS, default=PATIENCE_SECONDS,
        help="time to wait for the last answer (default: %(default)ss)",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    moment = Moment(options.major, options.minor)
    expected = Expected(options.scenario, "random", 1, tag=options.global_tag)
    path = f"payloadiovs/?gtName={options.global_tag}&majorIOV={moment.major}&minorIOV={moment.minor}"
    found = storm.run(f"{options.host}{PREFIX}{path}", jobs=options.jobs, timeout=options.patience)
    _write(options.directory, found, cache(lambda body: expected.fault(moment, body)))
    return 0


def _write(directory: Path, found: Storm, fault_of: Callable[[bytes], str | None]) -> None:
    epoch = clock.now() - time.perf_counter()
    due = epoch + found.begin
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{socket.gethostname()}-{os.getpid()}.csv"
    with (directory / f"requests-{name}").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(Request._fields)
        for job in found.jobs:
            called, detail = _verdict(job, fault_of)
            times = (due, epoch + job.begin, epoch + job.end)
            count = job.body.count(b"[") - 1 if called == outcome.OK else -1
            rows.writerow(Request(*times, USER, NAME, "GET", job.status, called, count, len(job.body), detail))
            whole = outcome.OK if called == outcome.OK else outcome.WRONG
            rows.writerow(Request(*times, USER, USER, JOB, 0, whole, 1, 0, ""))
    with (directory / f"generator-{name}").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(Sample._fields)
        busy = found.cpu_seconds / found.seconds
        rows.writerow(Sample(due + found.seconds, busy, found.longest * 1000, 1, len(found.jobs)))
    (directory / f"complete-{name}").touch()


def _verdict(job: Job, fault_of: Callable[[bytes], str | None]) -> tuple[str, str]:
    called = outcome.of_status(job.status, 200)
    if called != outcome.OK:
        return called, outcome.of_response(job.status, job.body)
    try:
        fault = fault_of(job.body)
    except ValueError as error:
        fault = f"not of the expected form: {error}: {job.body[:100]!r}"
    return (outcome.WRONG, fault[: outcome.DETAIL_LENGTH]) if fault else (outcome.OK, "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
