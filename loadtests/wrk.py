"""Running wrk, an HTTP load generator in C, and reading its counts and times."""

import json
import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from loadtests import child_process

SCRIPT = Path(__file__).with_name("wrk.lua")
TIMEOUT_SECONDS = 30


class MissingProgramError(Exception):
    """A program is not installed; the message is one line that names the Debian package."""


@dataclass(frozen=True)
class Load:
    """The result of one run of wrk. Response times are in milliseconds; bytes include headers."""

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
    # Errors of connecting, reading and writing.
    broken: int
    cpu_seconds: float
    wall_seconds: float
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Responses per second, including those with status 400 or above."""
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def errors(self) -> int:
        """Error responses, timeouts and broken connections together."""
        return self.refused + self.timeouts + self.broken

    @property
    def client_share(self) -> float:
        """The share of the capacity of all cores that wrk used."""
        return self.cpu_seconds / (self.wall_seconds * len(os.sched_getaffinity(0)))


def check_installed() -> None:
    """Raise `MissingProgramError` unless wrk is installed."""
    if shutil.which("wrk") is None:
        raise MissingProgramError("wrk was not found. On Debian or Ubuntu: apt-get install wrk")


def run(
    url: str,
    *,
    seconds: int,
    connections: int,
    mode: str = "random",
    seed: int = 1,
    count_statuses: bool = False,
    other_url: str | None = None,
    pause_milliseconds: float = 0,
) -> Load:
    """Put load on `url` for some seconds.

    With `mode` first, random or last, a moment is appended to `url`; with fixed it is used as it is. Every
    tenth request goes to `other_url`, if given. With a pause, each connection waits before each request for a
    random time with that mean. Raises `RuntimeError` with the output of wrk if it fails.
    """
    check_installed()
    parts = urlsplit(url)
    # One thread sends more requests than the service can handle; more threads would take CPU time from the service.
    command = [
        "wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s",
        "--timeout", f"{TIMEOUT_SECONDS}s", "--script", str(SCRIPT), f"{parts.scheme}://{parts.netloc}",
        "--", _target(url), mode, str(seed), "statuses" if count_statuses else "-",
        _target(other_url) if other_url else "-", str(pause_milliseconds),
    ]  # fmt: skip
    finished = child_process.run(command)
    lines = [line for line in finished.output.splitlines() if line.startswith("REPORT ")]
    if not lines:
        raise RuntimeError(f"wrk failed: {' '.join(finished.output.split())}")
    return _load(json.loads(lines[-1].removeprefix("REPORT ")), finished.cpu_seconds, finished.seconds)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _load(counted: dict, cpu: float, wall: float) -> Load:
    statuses: Counter[int] = Counter()
    for thread in counted["statuses"]:
        statuses.update({int(status): count for status, count in thread.items()})
    return Load(
        requests=counted["requests"],
        seconds=counted["microseconds"] / 1e6,
        bytes=counted["bytes"],
        **{name: counted[name] / 1000 for name in ("p50", "p95", "p99", "max")},
        refused=counted["status"],
        timeouts=counted["timeout"],
        broken=counted["connect"] + counted["read"] + counted["write"],
        cpu_seconds=cpu,
        wall_seconds=wall,
        statuses=dict(statuses),
    )
