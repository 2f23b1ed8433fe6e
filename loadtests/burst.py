"""`python -m loadtests.burst`: thousands of simultaneous lookups, recorded in the format of the locust users.

locust cannot start 10,000 requests at once: when it sends the last one, the first responses arrived long ago.
Plain sockets start all of them in a fraction of that time.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from cdb_rest.domain.moment import Moment
from cdb_rest.management.quantities import IN_SECONDS
from loadtests import storm
from loadtests.client import lookup_path
from loadtests.content.expected import Expected
from loadtests.recording import outcome
from loadtests.recording.reading import Recording
from loadtests.recording.rows import JOB, Files, Request, Sample, now
from loadtests.service import PREFIX, ServiceError, Settings, last_line, run_command

PATIENCE_SECONDS = 120
USER, NAME = "Burst", "lookup"


def run(host: str, directory: Path, options: dict[str, Any]) -> Recording:
    """Run this program in its own process, with the options by name, and return its recording.

    Raises `ServiceError` if the program fails.
    """
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    done = run_command(Settings(directory, {}), "-m", "loadtests.burst", host, str(directory), *words)
    if done.code:
        raise ServiceError(f"the storm failed: {last_line(done.output)}")
    return Recording.read(directory)


def main(arguments: Sequence[str]) -> int:
    """Send all lookups, compare the responses with the scenario (random layout, seed 1) and write the recording.

    The name of the tag may differ from that of the scenario. The code is always 0: the recording has the
    outcome of each job.
    """
    options = _parser().parse_args(arguments)
    moment = Moment(options.major, options.minor)
    expected = Expected(options.scenario, "random", 1, tag=options.global_tag)
    url = f"{options.host}{PREFIX}{lookup_path(options.global_tag, moment)}"
    found = storm.run(url, jobs=options.jobs, timeout=options.patience)
    _write(options.directory, found, cache(partial(_verdict, expected, moment)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtests.burst", description="Thousands of lookups at once.")
    parser.add_argument("host", help="such as http://127.0.0.1:8000")
    parser.add_argument("directory", type=Path, help="directory of the recording")
    for name, kind in (("jobs", int), ("scenario", str), ("global-tag", str), ("major", int), ("minor", int)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    text = "time to wait for the last response (default: %(default)ss)"
    parser.add_argument("--patience", **IN_SECONDS, default=PATIENCE_SECONDS, help=text)
    return parser


def _verdict(expected: Expected, moment: Moment, status: int, body: bytes) -> tuple[str, str]:
    """The outcome of a response, and the description of a failure."""
    if status != 200:
        return outcome.of_status(status, 200), outcome.of_response(status, body)
    try:
        fault = expected.fault(moment, body)
    except ValueError as error:
        fault = f"not of the expected form: {error}: {body[:100]!r}"
    return (outcome.WRONG, fault[: outcome.DETAIL_LENGTH]) if fault else (outcome.OK, "")


def _write(directory: Path, found: storm.Storm, verdict: Callable[[int, bytes], tuple[str, str]]) -> None:
    """Write the recording: a request and a job for each job of the storm, and one sample of the generator."""
    epoch = now() - time.perf_counter()
    due, files = epoch + found.begin, Files(directory)
    for job in found.jobs:
        result, detail = verdict(job.status, job.body)
        times = (due, epoch + job.begin, epoch + job.end)
        count = job.body.count(b"[") - 1 if result == outcome.OK else -1
        files.requests.writerow(Request(*times, USER, NAME, "GET", job.status, result, count, len(job.body), detail))
        whole = outcome.OK if result == outcome.OK else outcome.WRONG
        files.requests.writerow(Request(*times, USER, USER, JOB, 0, whole, 1, 0, ""))
    busy = found.cpu_seconds / found.seconds
    files.samples.writerow(Sample(due + found.seconds, busy, found.longest * 1000, 1, len(found.jobs)))
    files.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
