"""Running wrk, an HTTP load generator written in C, and reading its counts and response times."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from loadtests.service import ServiceError, run_to_end

SCRIPT = Path(__file__).with_name("wrk.lua")
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Load:
    """The result of one run of wrk.

    Response times (`p50` to `max`) are in milliseconds. `bytes` includes the headers of the responses. `cpu_seconds`
    and `wall_seconds` are those of the wrk process.
    """

    requests: int
    seconds: float
    bytes: int
    p50: float
    p95: float
    p99: float
    max: float
    # Responses with a status of 400 or above.
    refused: int
    timeouts: int
    # Errors while connecting, reading or writing.
    broken: int
    cpu_seconds: float
    wall_seconds: float
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        """Responses per second, including those with status 400 or above."""
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def errors(self) -> int:
        """The sum of the error responses, timeouts and connection errors."""
        return self.refused + self.timeouts + self.broken

    @property
    def client_share(self) -> float:
        """The CPU time of wrk as a share (0 to 1) of the capacity of all cores that this process may use."""
        return self.cpu_seconds / (self.wall_seconds * len(os.sched_getaffinity(0)))


def check_installed() -> None:
    """Raise `ServiceError` unless wrk is installed."""
    if shutil.which("wrk") is None:
        raise ServiceError("wrk was not found. On Debian or Ubuntu: apt-get install wrk")


def run(
    url: str,
    *,
    seconds: int,
    connections: int,
    mode: str = "random",
    seed: int = 1,
    count_statuses: bool = False,
    pause_milliseconds: float = 0,
) -> Load:
    """Send GET requests to `url` for `seconds` seconds, on `connections` concurrent connections.

    `mode` is the moment that is appended to the URL of each request: "last" (major and minor 2^31 - 1), "random"
    (both from 0 to 2^31 - 1, from a generator with `seed`) or "fixed" (none: `url` is used as it is). With
    `pause_milliseconds`, a connection waits before each request for a random time with this mean. `count_statuses`
    fills `Load.statuses`, which costs CPU time of wrk.

    Raises `ServiceError`, or `RuntimeError` with the output of wrk if wrk fails.
    """
    check_installed()
    parts = urlsplit(url)
    # One thread can send more requests than the service can handle. More threads would take CPU time from the service.
    options = f"--threads 1 --connections {connections} --duration {seconds}s --timeout {TIMEOUT_SECONDS}s"
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    words = [target, mode, str(seed), "statuses" if count_statuses else "-", str(pause_milliseconds)]
    command = ["wrk", *options.split(), "--script", str(SCRIPT), f"{parts.scheme}://{parts.netloc}", "--", *words]
    finished = run_to_end(command)
    lines = [line for line in finished.output.splitlines() if line.startswith("REPORT ")]
    if not lines:
        raise RuntimeError(f"wrk failed: {' '.join(finished.output.split())}")
    counted = json.loads(lines[-1].removeprefix("REPORT "))
    statuses = {int(status): count for status, count in counted.pop("statuses").items()}
    return Load(**counted, statuses=statuses, cpu_seconds=finished.cpu_seconds, wall_seconds=finished.seconds)
