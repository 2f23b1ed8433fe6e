"""`python -m loadtests.burst`: thousands of simultaneous lookups, recorded in the format of the locust users.

locust cannot start 10,000 requests at once: when it sends the last one, the first responses arrived long ago.
Plain sockets start all of them in a fraction of that time. Each job opens a connection, sends one request, reads the
whole response and closes.
"""

import argparse
import json
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cdb_rest.domain.moment import Moment
from loadtests.client import lookup_path
from loadtests.content.expected import Expected
from loadtests.recording import outcome
from loadtests.recording.reading import Recording
from loadtests.recording.rows import JOB, Files, Request, Sample, now
from loadtests.reporting.summaries import percentiles_of
from loadtests.service import PREFIX, ServiceError, Settings, checked, run_command

PATIENCE_SECONDS = 120
# The kernel's queues must be empty before the next storm.
PAUSE_SECONDS = 2.0
USER, NAME = "Burst", "lookup"
# Open files of a process besides the connections of its jobs.
SPARE_FILES = 512
RECEIVE_BYTES = 256 * 1024
# The figures of a storm, with their headings, and the outcomes that are shown separately.
MEASURED = {"responses_per_s": "responses/s", "p50_ms": "p50 ms", "p99_ms": "p99 ms", "last_ms": "last ms"}
SHOWN = (outcome.OK, outcome.OVERLOADED, outcome.NO_RESPONSE)


def run(host: str, directory: Path, options: dict[str, Any]) -> Recording:
    """Run this program in its own process, with the options of `main` by name, and return its recording.

    Raises `ServiceError` if the program fails.
    """
    given = json.dumps({"host": host, "directory": str(directory), "patience": PATIENCE_SECONDS} | options)
    checked(run_command(Settings(directory, {}), "-m", "loadtests.burst", given), "the storm")
    return Recording.read(directory)


def figures_of(recording: Recording, jobs: int) -> dict[str, float | None]:
    """The figures of a storm of `jobs` jobs, and their number by outcome.

    `responses_per_s` are correct responses per second until the last one; `p50_ms`, `p99_ms` and `last_ms` are
    measured from the begin of the storm. `spread_ms` is the time from the begin of the first job to that of the last
    one. `other` are the jobs with an outcome that is not in `SHOWN`.
    """
    requests = recording.requests
    outcomes, times = requests.counts, percentiles_of(requests.milliseconds)
    return {
        "responses_per_s": outcomes[outcome.OK] / (times["max_ms"] / 1000),
        "p50_ms": times["p50_ms"],
        "p99_ms": times["p99_ms"],
        "last_ms": times["max_ms"],
        "spread_ms": float(requests.begin.max() - requests.begin.min()) * 1000,
        "other": jobs - sum(outcomes[name] for name in SHOWN),
        **outcomes,
    }


def allow_files(jobs: int) -> None:
    """Raise the limit on open files of this process and its children, for a storm of `jobs` jobs.

    Raises `ServiceError` if that is not permitted.
    """
    number, (soft, hard) = jobs + SPARE_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= number:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, max(number, hard)))
    except (ValueError, OSError) as error:
        raise ServiceError(
            f"a storm of {jobs:,} jobs needs {number:,} open files, but the limit is {hard:,}: "
            f"raise it (ulimit -Hn {number}) or reduce --jobs"
        ) from error


def main(arguments: Sequence[str]) -> int:
    """Send all lookups, compare the responses with the scenario (random layout, seed 1) and write the recording.

    The argument is a JSON object: `host` is such as http://127.0.0.1:8000, `directory` that of the recording, `jobs` the
    number of lookups at the moment (`major`, `minor`) in `global_tag`, whose rows are those of `scenario`, and `patience`
    the seconds to wait for the last response. The code is always 0: the recording has the outcome of each job.
    """
    options = argparse.Namespace(**json.loads(arguments[0]))
    moment = Moment(options.major, options.minor)
    expected = Expected(options.scenario, "random", 1, tag=options.global_tag)
    url = f"{options.host}{PREFIX}{lookup_path(options.global_tag, moment)}"

    @cache
    def verdict(status: int, body: bytes) -> tuple[str, str]:
        return outcome.judged(status, body, (200,), lambda: expected.fault(moment, body))

    _play(options, url, verdict)
    return 0


@dataclass
class Job:
    """One job: when it began and when its response was complete or lost.

    Status 0 is no response: the connection was refused, reset or closed early.
    """

    begin: float = field(default_factory=now)
    end: float = 0.0
    status: int = 0
    body: bytes = b""
    received: bytearray = field(default_factory=bytearray)

    def finish(self, bodies: dict[bytes, bytes]) -> None:
        """Set the end and the response; equal bodies are stored once, in `bodies`."""
        self.end = now()
        head, separator, body = bytes(self.received).partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if separator and lengths and int(lengths[0]) == len(body):
            self.status, self.body = int(head.split(b" ", 2)[1]), bodies.setdefault(body, body)
        self.received = bytearray()


def _play(options: argparse.Namespace, url: str, verdict: Callable[[int, bytes], tuple[str, str]]) -> None:
    """Start all jobs at once, and write a request and a job for each, and one sample of the generator.

    Raises `ServiceError` if the process cannot open a connection for each job.
    """
    cpu, due = time.process_time(), now()
    clients, lag = exchange(options.host, [[url]] * options.jobs, options.patience)
    seconds = now() - due
    generator = seconds, (time.process_time() - cpu) / seconds, lag * 1000
    _write(Path(options.directory), due, [job for jobs in clients for job in jobs], verdict, generator)


def exchange(host: str, clients: Sequence[Sequence[str]], patience: float) -> tuple[list[list[Job]], float]:
    """Start all clients at once. Each requests its URLs one after the other, over a new connection each, while it gets 200.

    Returns the requests of each client, and the longest time in seconds for which this loop did not look at its connections.
    After `patience` seconds, the rest has no response. Raises `ServiceError` if the process cannot open so many connections.
    """
    allow_files(len(clients))
    parts, bodies = urlsplit(host), {}
    begin, longest, done = now(), 0.0, [[] for _ in clients]

    def start(client: int) -> None:
        url = urlsplit(clients[client][len(done[client])])
        text = f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
        job, connection = Job(), socket.socket()
        done[client].append(job)
        connection.setblocking(False)
        connection.connect_ex((parts.hostname, parts.port))
        selector.register(connection, selectors.EVENT_WRITE, (client, job, text.encode()))

    def end(key: selectors.SelectorKey) -> None:
        client, job, _ = key.data
        job.finish(bodies)
        selector.unregister(key.fileobj)
        key.fileobj.close()
        if job.status == 200 and len(done[client]) < len(clients[client]):
            start(client)

    with selectors.DefaultSelector() as selector:
        for client in range(len(clients)):
            start(client)
        while selector.get_map() and now() < begin + patience:
            ready = selector.select(1)
            since = now()
            for key, _ in ready:
                if _is_over(selector, key):
                    end(key)
            longest = max(longest, now() - since)
        for key in list(selector.get_map().values()):
            key.data[1].finish(bodies)
            key.fileobj.close()
    return done, longest


def _is_over(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
    """Send the request of a job, or read a part of its response; returns whether nothing more will come."""
    _, job, request = key.data
    try:
        if key.events == selectors.EVENT_WRITE:
            key.fileobj.send(request)
            selector.modify(key.fileobj, selectors.EVENT_READ, key.data)
            return False
        piece = key.fileobj.recv(RECEIVE_BYTES)
    except BlockingIOError:
        return False
    except OSError:
        return True
    job.received += piece
    return not piece


def _write(
    directory: Path,
    due: float,
    jobs: Sequence[Job],
    verdict: Callable[[int, bytes], tuple[str, str]],
    generator: tuple[float, float, float],
) -> None:
    """Write the recording; `generator` has the seconds, cores and longest lag in milliseconds of this process."""
    files, (seconds, cores, lag) = Files(directory), generator
    for job in jobs:
        result, detail = verdict(job.status, job.body)
        times, rows = (due, job.begin, job.end), job.body.count(b"[") - 1 if result == outcome.OK else -1
        files.requests.writerow(Request(*times, USER, NAME, "GET", job.status, result, rows, len(job.body), detail))
        whole = outcome.OK if result == outcome.OK else outcome.WRONG
        files.requests.writerow(Request(*times, USER, USER, JOB, 0, whole, 1, 0, ""))
    files.samples.writerow(Sample(due + seconds, cores, lag, 1, len(jobs)))
    files.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
