"""wrk as a function: whole HTTP answers under load, counted and timed by a client in C."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

SCRIPT = Path(__file__).with_name("wrk.lua")
TIMEOUT_SECONDS = 30


class MissingProgramError(Exception):
    """A program is not installed; the message is one line that names the Debian package."""


@dataclass(frozen=True)
class Load:
    """What one run of wrk counted. Times of answers are in milliseconds; bytes include headers."""

    requests: int
    seconds: float
    bytes: int
    p50: float
    p95: float
    p99: float
    max: float
    # Answers with a status from 400 on.
    refused: int
    timeouts: int
    # Connections that could not be opened, read from or written to.
    broken: int
    cpu_seconds: float
    wall_seconds: float
    statuses: dict[int, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Answers in a second, refusals included."""
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def errors(self) -> int:
        """Everything that is not a good answer in time."""
        return self.refused + self.timeouts + self.broken

    @property
    def client_share(self) -> float:
        """Which part of all cores the client itself took."""
        return self.cpu_seconds / (self.wall_seconds * len(os.sched_getaffinity(0)))


def check_installed() -> None:
    """Raise `MissingProgramError` unless wrk can be run."""
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
    """Put load on `url` for some seconds; with `mode` first, random or last, a moment is added to it, with fixed it is
    taken as it is. Every tenth question goes to `other_url` if there is one. With a pause each connection waits before each
    question, for a random time of that mean. Raises `RuntimeError` with what wrk said
    if it failed."""
    check_installed()
    parts = urlsplit(url)
    # One thread of the client can ask far more than the service answers; more would take cores from it.
    command = [
        "wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s",
        "--timeout", f"{TIMEOUT_SECONDS}s", "--script", str(SCRIPT), f"{parts.scheme}://{parts.netloc}",
        "--", _target(url), mode, str(seed), "statuses" if count_statuses else "-",
        _target(other_url) if other_url else "-", str(pause_milliseconds),
    ]  # fmt: skip
    output, usage, wall = _run(command)
    lines = [line for line in output.splitlines() if line.startswith("REPORT ")]
    if not lines:
        raise RuntimeError(f"wrk failed: {' '.join(output.split())}")
    return _load(json.loads(lines[-1].removeprefix("REPORT ")), usage.ru_utime + usage.ru_stime, wall)


def _target(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _run(command: Sequence[str]) -> tuple[str, "os.struct_rusage", float]:
    with tempfile.TemporaryFile("w+") as output:
        begin = time.monotonic()
        # A session of its own: Ctrl-C is ours to handle, and the child is killed below.
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            # The usage of this child alone, which the sum over all children would not tell.
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall = time.monotonic() - begin
        output.seek(0)
        return output.read(), usage, wall


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
