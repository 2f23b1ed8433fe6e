"""Thousands of simultaneous jobs: each opens a connection, sends one request, reads the whole response and closes."""

import resource
import selectors
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from loadtests.reporting.figures import percentile
from loadtests.service import ServiceError

# Open files of a process besides the connections of its jobs.
SPARE_FILES = 512
RECEIVE_BYTES = 256 * 1024


@dataclass
class Job:
    """One job: when it connected and when its response was complete or lost, by `time.perf_counter`.

    Status 0 is no response: the connection was refused, reset or closed early.
    """

    begin: float
    end: float = 0.0
    status: int = 0
    body: bytes = b""
    received: bytearray = field(default_factory=bytearray)


@dataclass
class Storm:
    """The outcome of all jobs.

    `longest` is the longest time in seconds that the client took to process the sockets that were ready at the
    same time.
    """

    jobs: list[Job] = field(default_factory=list)
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    begin: float = 0.0
    longest: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def statuses(self) -> Counter[int]:
        """The number of jobs by status."""
        return Counter(job.status for job in self.jobs)

    def time_of(self, share: float) -> float | None:
        """The milliseconds from the begin within which `share` percent of the responses arrived; None without any."""
        times = [(job.end - self.begin) * 1000 for job in self.jobs if job.status]
        return percentile(times, share) if times else None

    def end(self, job: Job) -> None:
        """Set the end and the outcome of a job."""
        job.end = time.perf_counter()
        head, separator, body = bytes(job.received).partition(b"\r\n\r\n")
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if separator and lengths and int(lengths[0]) == len(body):
            job.status = int(head.split(b" ", 2)[1])
            # Equal bodies are stored once.
            job.body = self.bodies.setdefault(body, body) if job.status == 200 else body
        job.received = bytearray()


def run(url: str, *, jobs: int, timeout: float) -> Storm:
    """Start all jobs at once. Raises `ServiceError` if the process cannot open a connection for each job."""
    parts = urlsplit(url)
    request = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()
    allow_files(jobs)
    storm = Storm()
    cpu, storm.begin = time.process_time(), time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for _ in range(jobs):
            connection = socket.socket()
            connection.setblocking(False)
            storm.jobs.append(Job(time.perf_counter()))
            connection.connect_ex((parts.hostname, parts.port))
            selector.register(connection, selectors.EVENT_WRITE, storm.jobs[-1])
        while selector.get_map() and time.perf_counter() < storm.begin + timeout:
            ready = selector.select(1)
            since = time.perf_counter()
            for key, _ in ready:
                if _is_over(selector, key, request):
                    _close(storm, selector, key)
            storm.longest = max(storm.longest, time.perf_counter() - since)
        for key in list(selector.get_map().values()):
            _close(storm, selector, key)
    storm.seconds = time.perf_counter() - storm.begin
    storm.cpu_seconds = time.process_time() - cpu
    return storm


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


def _is_over(selector: selectors.BaseSelector, key: selectors.SelectorKey, request: bytes) -> bool:
    """Send the request of a job, or read a part of its response; returns whether nothing more will come."""
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
    key.data.received += piece
    return not piece


def _close(storm: Storm, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    storm.end(key.data)
    selector.unregister(key.fileobj)
    key.fileobj.close()
