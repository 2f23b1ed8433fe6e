"""Runs of the real locust against a server with a known fault, several at a time, and what each side wrote down."""

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

# More would only wait for each other's start.
AT_ONCE = 4


@dataclass(frozen=True)
class Case:
    """What the server does wrong, and the load on it."""

    fault: str
    users: int = 3
    seconds: float | None = None
    processes: int = 1
    options: dict = field(default_factory=lambda: {"jobs-per-user": 20})

    @property
    def load(self):
        # Of the earliest moments the right answer has no rows, and could not be made a wrong one.
        options = {"global-tag": "tiny", "layout": "random", "pattern": "last", "patience": 5, **self.options}
        return Load({"ReconstructionJob": 1}, self.users, self.seconds, options=options, processes=self.processes)


@dataclass(frozen=True)
class Seen:
    """What the client recorded, and what the server noted for itself, in the order in which requests came."""

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
        """How often the server did what."""
        return Counter(request.get("did") for request in self.server)


@contextlib.contextmanager
def fake(fault, directory):
    """A server, `fault` being its arguments; yields its URL and the file that it writes."""
    directory.mkdir(parents=True)
    log = directory / "server.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.loadtests.fake_server", str(log), *fault.split()],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", log
    finally:
        process.kill()
        process.communicate()


def noted(log):
    """What the server wrote down, one dictionary for each request."""
    requests = {}
    for line in log.read_text().splitlines():
        facts = json.loads(line)
        requests.setdefault(facts["number"], {}).update(facts)
    return [requests[number] for number in sorted(requests)]


def play(case: Case, directory: Path) -> Seen:
    """One case."""
    with fake(case.fault, directory) as (url, log):
        recording = locusts.run(url, case.load, directory / "recording")
        return Seen(recording, noted(log))


def play_all(cases: dict[str, Case], directory: Path) -> dict[str, Seen]:
    """All cases, by their names."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        started = {name: pool.submit(play, case, directory / name) for name, case in cases.items()}
        return {name: run.result() for name, run in started.items()}
