"""Thousands of simultaneous jobs: each opens a connection, sends one request, reads the whole response and closes."""

import contextlib
import resource
import selectors
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from loadtests.reporting.figures import percentile

# Open files of a process besides the connections of its jobs.
SPARE_FILES = 64
RECEIVE_BYTES = 256 * 1024


@dataclass
class Job:
    """One job: when it connected and when its response was complete or lost, by `time.perf_counter`.

    Status 0 is no response.
    """

    begin: float
    end: float = 0.0
    status: int = 0
    body: bytes = b""


@dataclass
class Storm:
    """The outcome of all jobs.

    `times` are milliseconds from the first connection attempt of all jobs to the end of each response.
    `longest` is the longest time in seconds that the client took to process the sockets that were ready at the
    same time.
    """

    jobs: list[Job] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    # Connections that were refused, reset or closed early.
    dropped: int = 0
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    begin: float = 0.0
    longest: float = 0.0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def good(self) -> int:
        """The number of responses with status 200."""
        return self.statuses[200]

    def time_of(self, share: float) -> float | None:
        """The time in milliseconds within which `share` percent of the complete responses arrived; None without any."""
        return percentile(self.times, share) if self.times else None


def run(url: str, *, jobs: int, timeout: float) -> Storm:
    """Start all jobs at once. Raises `OSError` if the process cannot open so many connections."""
    parts = urlsplit(url)
    request = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()
    _allow_files(jobs + SPARE_FILES)
    storm = Storm()
    cpu, storm.begin = time.process_time(), time.perf_counter()
    with selectors.DefaultSelector() as selector:
        waiting: dict[socket.socket, tuple[Job, bytearray]] = {}
        for _ in range(jobs):
            connection = socket.socket()
            connection.setblocking(False)
            storm.jobs.append(Job(time.perf_counter()))
            connection.connect_ex((parts.hostname, parts.port))
            waiting[connection] = storm.jobs[-1], bytearray()
            selector.register(connection, selectors.EVENT_WRITE)
        _exchange(storm, selector, request, waiting, storm.begin + timeout)
    for connection, (job, _) in waiting.items():
        storm.dropped += 1
        job.end = time.perf_counter()
        connection.close()
    storm.seconds = time.perf_counter() - storm.begin
    storm.cpu_seconds = time.process_time() - cpu
    return storm


def _exchange(
    storm: Storm,
    selector: selectors.BaseSelector,
    request: bytes,
    waiting: dict[socket.socket, tuple[Job, bytearray]],
    deadline: float,
) -> None:
    """Send requests and read responses until no job waits, or until the deadline.

    Jobs that end are removed from `waiting`.
    """
    while waiting and time.perf_counter() < deadline:
        ready = selector.select(1)
        since = time.perf_counter()
        for key, _ in ready:
            if _advance(selector, key, request, waiting[key.fileobj][1]):
                continue
            job, received = waiting.pop(key.fileobj)
            job.end = time.perf_counter()
            _record(storm, job, bytes(received))
            selector.unregister(key.fileobj)
            key.fileobj.close()
        storm.longest = max(storm.longest, time.perf_counter() - since)


def _allow_files(number: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(number, hard), hard))


def _advance(selector: selectors.BaseSelector, key: selectors.SelectorKey, request: bytes, received: bytearray) -> bool:
    """Send the request of a job, or read a part of its response; returns whether the job has more to do."""
    with contextlib.suppress(BlockingIOError):
        try:
            if key.events == selectors.EVENT_WRITE:
                key.fileobj.send(request)
                selector.modify(key.fileobj, selectors.EVENT_READ)
                return True
            piece = key.fileobj.recv(RECEIVE_BYTES)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise
            return False
        received += piece
        return bool(piece)
    return True


def _record(storm: Storm, job: Job, response: bytes) -> None:
    head, separator, body = response.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if not separator or not lengths or int(lengths[0]) != len(body):
        storm.dropped += 1
        return
    job.status = int(head.split(b" ", 2)[1])
    # Equal bodies are stored once.
    job.body = storm.bodies.setdefault(body, body) if job.status == 200 else body
    storm.statuses[job.status] += 1
    storm.times.append((job.end - storm.begin) * 1000)
