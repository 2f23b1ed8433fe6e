"""The metrics files of processes: one set for each slot, continued by the next process in that slot."""

import os
import resource
import shutil
import signal
import subprocess
import sys

import psutil
import pytest
from prometheus_client import CollectorRegistry, multiprocess

from cdb.env import ROOT
from cdb_rest.metrics.slots import Slots

# Counts as told, says so, and waits; a line "fork" makes it go on in a child.
PROGRAM = """
import os, sys
from pathlib import Path
from cdb_rest.metrics.values import share
share(Path(sys.argv[1]))
from cdb_rest.metrics import counts
for line in sys.stdin:
    if line == "fork\\n":
        if os.fork():
            os.wait()
            sys.exit()
    elif line == "many\\n":
        for number in range(5000):
            counts.ERRORS.labels(f"code{number}").inc()
    else:
        counts.LOOKUPS_RECEIVED.inc(int(line))
        counts.EXPORTS.inc(int(line))
    print(os.getpid(), flush=True)
"""


class Process:
    def __init__(self, directory):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(directory)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def tell(self, word):
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        self.pid = int(self._process.stdout.readline())
        return self

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self._process.stdin.close()
        self._process.wait(10)


@pytest.fixture
def start(tmp_path):
    started = []

    def one():
        started.append(Process(tmp_path))
        return started[-1]

    yield one
    for process in started:
        if process._process.poll() is None:
            process.kill()


def told(directory):
    """Lookups and exports, as the newest process reads them from the files."""
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, str(directory))
    return tuple(registry.get_sample_value(name) for name in ("cdb_lookups_received_total", "cdb_exports_in_progress"))


def files(directory):
    return sorted(path.name for path in directory.glob("counter_*.db"))


def test_processes_at_a_time_have_files_of_their_own(start, tmp_path):
    for number in (1, 10, 100):
        start().tell(number)
    assert told(tmp_path) == (111, 111)
    assert files(tmp_path) == ["counter_0.db", "counter_1.db", "counter_2.db"]


def test_one_that_comes_after_a_killed_one_goes_on_with_its_counts_but_not_its_gauges(start, tmp_path):
    first, _other = start().tell(5), start().tell(1)
    first.kill()
    assert told(tmp_path) == (6, 6)
    for _ in range(3):
        next_one = start().tell(100)
        next_one.kill()
    assert told(tmp_path)[0] == 306 and files(tmp_path) == ["counter_0.db", "counter_1.db"]
    start().tell(7)
    assert told(tmp_path) == (313, 8)


def test_a_forked_process_counts_for_itself(start, tmp_path):
    process = start().tell(5).tell("fork").tell(20)
    assert told(tmp_path) == (25, 25)
    assert files(tmp_path) == ["counter_0.db", "counter_1.db"]
    process.kill()


def test_files_grow_when_they_must(start, tmp_path):
    process = start().tell(5).tell("many").tell(5)
    assert told(tmp_path) == (10, 10)
    assert (tmp_path / "counter_0.db").stat().st_size > 512 * 1024
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry, str(tmp_path))
    assert registry.get_sample_value("cdb_errors_total", {"code": "code4999"}) == 1
    process.kill()


def test_a_full_disk_uses_up_no_descriptors(tmp_path):
    slots = Slots(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = psutil.Process().num_fds()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        for _ in range(3):
            with pytest.raises(OSError, match="File too large"):
                slots.number()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert psutil.Process().num_fds() == before
    assert slots.number() == 0


def test_a_process_without_a_slot_continues_without_metrics(start, tmp_path):
    process = start().tell(5)
    shutil.rmtree(tmp_path)
    process.tell("fork").tell("many").tell(5)
    process.kill()
