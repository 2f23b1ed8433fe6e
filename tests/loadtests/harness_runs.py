"""Concurrent runs of locust against servers with known faults, with the recording of the client and the log of the server."""

import contextlib
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cdb.env import ROOT
from loadtests.campaigns import locusts
from loadtests.campaigns.locusts import Load
from loadtests.recording.reading import Recording

# More processes would only slow down each other's start.
AT_ONCE = 4


@dataclass(frozen=True)
class Case:
    """A fault of the server, and the load on it."""

    fault: str
    users: int = 3
    seconds: float | None = None
    processes: int = 1
    options: dict = field(default_factory=lambda: {"jobs-per-user": 20})

    @property
    def load(self):
        # At the earliest moments the correct response has no rows that a fault could change.
        options = {"global-tag": "tiny", "layout": "random", "pattern": "last", "patience": 5, **self.options}
        return Load({"ReconstructionJob": 1}, self.users, self.seconds, options=options, processes=self.processes)


@dataclass(frozen=True)
class Seen:
    """The recording of the client, and the log of the server in the order of its requests."""

    recording: Recording
    server: list[dict]

    @cached_property
    def requests(self):
        return self.recording.requests

    @property
    def outcomes(self):
        return Counter(self.requests.outcomes.tolist())

    @property
    def did(self):
        """The number of requests by the fault that the server applied."""
        return Counter(request.get("did") for request in self.server)


@contextlib.contextmanager
def fake(fault, directory):
    """Run a server with the arguments `fault`; yields its URL and the path of its log."""
    directory.mkdir(parents=True)
    log = directory / "server.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.loadtests.fake_server", str(log), *fault.split()],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", log
    finally:
        process.kill()
        process.communicate()


def noted(log):
    """The log of the server: one dictionary for each request."""
    requests = {}
    for line in log.read_text().splitlines():
        facts = json.loads(line)
        requests.setdefault(facts["number"], {}).update(facts)
    return [requests[number] for number in sorted(requests)]


def play(case: Case, directory: Path) -> Seen:
    """Run one case."""
    with fake(case.fault, directory) as (url, log):
        recording = locusts.run(url, case.load, directory / "recording")
        return Seen(recording, noted(log))


def play_all(cases: dict[str, Case], directory: Path) -> dict[str, Seen]:
    """Run all cases, and return their results by name."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        started = {name: pool.submit(play, case, directory / name) for name, case in cases.items()}
        return {name: run.result() for name, run in started.items()}
