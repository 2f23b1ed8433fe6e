"""Failures of the generator itself: its recording has every request, and the campaign reports the failure."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from cdb.env import ROOT
from loadtests.campaigns import locusts
from loadtests.campaigns.locusts import Load
from loadtests.recording import outcome
from loadtests.recording.reading import Recording
from loadtests.recording.rows import now
from loadtests.reporting.runs import generator_verdict
from loadtests.service import ServiceError, stop
from tests.loadtests.harness_runs import fake, noted

pytestmark = pytest.mark.xdist_group("harness failures")

ENDLESS = Load({"ReconstructionJob": 1}, 5, seconds=600, options={"global-tag": "tiny"})
TWO = Load({"ReconstructionJob": 1}, 4, seconds=3, options={"global-tag": "tiny", "patience": 2}, processes=2)


def start(url, load, directory, **changes):
    words = [changes.get(word, word) for word in load.arguments(url, directory)]
    return subprocess.Popen(
        [sys.executable, "-m", "locust", *words],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_killed_generator_leaves_its_recording(tmp_path):
    with fake("delay --seconds 0.02", tmp_path / "fake") as (url, log):
        process = start(url, ENDLESS, tmp_path / "recording")
        wait_until(lambda: len(noted(log)) > 200)
        process.send_signal(signal.SIGKILL)
        process.wait()
        answered = sum("went" in request for request in noted(log))
    recording = Recording.read(tmp_path / "recording")
    # Each user may have a request in progress that it has not written yet.
    assert answered - ENDLESS.count <= len(recording.requests) <= answered
    assert set(recording.requests.outcomes.tolist()) == {outcome.OK}


def test_locust_run_reports_lost_worker_process(tmp_path):
    with fake("delay --seconds 0.02", tmp_path / "fake") as (url, log), ThreadPoolExecutor() as pool:
        run = pool.submit(locusts.run, url, TWO, tmp_path / "recording")
        wait_until(lambda: len(noted(log)) > 50)
        # Other child processes may have ended.
        alive = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
        [main] = [child for child in alive if str(tmp_path / "recording") in child.cmdline()]
        os.kill(main.children()[0].pid, signal.SIGKILL)
        with pytest.raises(ServiceError, match="locust"):
            run.result()
    assert len(Recording.read(tmp_path / "recording")) > 0


def test_locust_run_reports_last_line_of_failed_locust(tmp_path):
    load = Load({"UnknownUser": 1}, 1, seconds=1)
    with pytest.raises(ServiceError, match=r"locust failed \(\d\): .*UnknownUser"):
        locusts.run("http://127.0.0.1:9", load, tmp_path)


def test_recording_has_failures_of_users(tmp_path):
    load = Load({"Broken": 1}, 1, options={"jobs-per-user": 10, "patience": 2})
    own = load.arguments("", tmp_path)[1]
    with fake("none", tmp_path / "fake") as (url, log):
        process = start(url, load, tmp_path / "recording", **{own: str(ROOT / "tests/loadtests/broken_locustfile.py")})
        process.wait(60)
    recording = Recording.read(tmp_path / "recording")
    requests = recording.requests
    assert len(noted(log)) == (requests.outcomes == outcome.OK).sum() == 10
    assert (requests.outcomes == outcome.GENERATOR_ERROR).sum() == 5
    assert recording.jobs.outcomes.tolist().count(outcome.GENERATOR_ERROR) == 5
    assert outcome.GENERATOR_ERROR in recording.examples
    assert "it failed 10 times" in generator_verdict(recording)


def test_step_of_wall_clock_changes_no_recorded_times(monkeypatch):
    before = now()
    assert abs(before - time.time()) < 1
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= now() - before < 60


HANDLES_SIGTERM = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(print('cleaned up')))\n"
IGNORES_SIGTERM = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


@pytest.mark.parametrize(("program", "said"), [(HANDLES_SIGTERM, "ready\ncleaned up\n"), (IGNORES_SIGTERM, "ready\n")])
def test_stop_terminates_process_and_kills_it_after_timeout(program, said):
    process = subprocess.Popen(
        [sys.executable, "-c", program + "print('ready', flush=True)\nsignal.pause()"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    ready = process.stdout.readline()
    stop(process, 5 if program == HANDLES_SIGTERM else 0.2)
    assert process.returncode is not None
    assert ready + process.stdout.read() == said
