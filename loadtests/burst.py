"""`python -m loadtests.burst`: thousands of simultaneous lookups, recorded in the format of the locust users.

locust cannot start 10,000 requests at once: when it sends the last one, the first responses arrived long ago.
Plain sockets start all of them in a fraction of that time.
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


def run(host: str, directory: Path, options: dict[str, str]) -> Recording:
    """Run this program in its own process, with the options by name, and return its recording.

    The limit on open files must be higher than the number of jobs. Raises `ServiceError` if the program fails.
    """
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = run_command(Settings(directory, {}), "-m", "loadtests.burst", host, str(directory), *words)
    if done.code:
        raise ServiceError(f"the storm failed: {(done.output.strip().splitlines() or ['no output'])[-1]}")
    return Recording.read(directory)


def main(arguments: Sequence[str]) -> int:
    """Send all lookups, compare the responses with the scenario (random layout, seed 1) and write the recording.

    The name of the tag may differ from that of the scenario. The code is always 0: the recording has the
    outcome of each job.
    """
    parser = argparse.ArgumentParser(prog="python -m loadtests.burst", description="Thousands of lookups at once.")
    parser.add_argument("host", help="such as http://127.0.0.1:8000")
    parser.add_argument("directory", type=Path, help="directory of the recording")
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--scenario", required=True)
    parser.add_argument("--global-tag", required=True)
    parser.add_argument("--major", type=int, required=True)
    parser.add_argument("--minor", type=int, required=True)
    parser.add_argument(
        "--patience", **IN_SECONDS, default=PATIENCE_SECONDS,
        help="time to wait for the last response (default: %(default)ss)",
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
            result, detail = _verdict(job, fault_of)
            times = (due, epoch + job.begin, epoch + job.end)
            count = job.body.count(b"[") - 1 if result == outcome.OK else -1
            rows.writerow(Request(*times, USER, NAME, "GET", job.status, result, count, len(job.body), detail))
            whole = outcome.OK if result == outcome.OK else outcome.WRONG
            rows.writerow(Request(*times, USER, USER, JOB, 0, whole, 1, 0, ""))
    with (directory / f"generator-{name}").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(Sample._fields)
        busy = found.cpu_seconds / found.seconds
        rows.writerow(Sample(due + found.seconds, busy, found.longest * 1000, 1, len(found.jobs)))
    (directory / f"complete-{name}").touch()


def _verdict(job: Job, fault_of: Callable[[bytes], str | None]) -> tuple[str, str]:
    result = outcome.of_status(job.status, 200)
    if result != outcome.OK:
        return result, outcome.of_response(job.status, job.body)
    try:
        fault = fault_of(job.body)
    except ValueError as error:
        fault = f"not of the expected form: {error}: {job.body[:100]!r}"
    return (outcome.WRONG, fault[: outcome.DETAIL_LENGTH]) if fault else (outcome.OK, "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
