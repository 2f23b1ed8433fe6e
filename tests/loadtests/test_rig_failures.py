"""What is left when the rig itself breaks: every request that it met, and word of what happened."""

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
from loadtests.reporting.runs import Generator
from loadtests.service import ServiceError, stop
from tests.loadtests.rig_runs import fake, noted

pytestmark = pytest.mark.xdist_group("rig failures")

ENDLESS = Load({"ReconstructionJob": 1}, 5, seconds=600, options={"global-tag": "tiny"})
TWO = Load({"ReconstructionJob": 1}, 4, seconds=3, options={"global-tag": "tiny", "patience": 2}, processes=2)


def start(url, load, directory, **changes):
    words = [changes.get(word, word) for word in load.arguments(url, directory)]
    return subprocess.Popen(
        [sys.executable, "-m", "locust", *words],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def wait_until(is_so):
    deadline = time.monotonic() + 60
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_so()


def test_a_killed_process_leaves_all_that_it_met(tmp_path):
    with fake("delay --seconds 0.02", tmp_path / "fake") as (url, log):
        process = start(url, ENDLESS, tmp_path / "recording")
        wait_until(lambda: len(noted(log)) > 200)
        process.send_signal(signal.SIGKILL)
        process.wait()
        answered = sum("went" in request for request in noted(log))
    recording = Recording.read(tmp_path / "recording")
    # Each user may have been about to write one.
    assert answered - ENDLESS.count <= len(recording.requests) <= answered
    assert set(recording.requests.outcomes.tolist()) == {outcome.OK}


def test_a_lost_worker_process_is_told(tmp_path):
    with fake("delay --seconds 0.02", tmp_path / "fake") as (url, log), ThreadPoolExecutor() as pool:
        run = pool.submit(locusts.run, url, TWO, tmp_path / "recording")
        wait_until(lambda: len(noted(log)) > 50)
        # The others may have ended.
        alive = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
        [main] = [child for child in alive if str(tmp_path / "recording") in child.cmdline()]
        os.kill(main.children()[0].pid, signal.SIGKILL)
        with pytest.raises(ServiceError, match="locust"):
            run.result()
    assert len(Recording.read(tmp_path / "recording")) > 0


def test_what_locust_cannot_do_is_told_with_its_last_line(tmp_path):
    load = Load({"NobodyAtAll": 1}, 1, seconds=1)
    with pytest.raises(ServiceError, match=r"locust failed \(\d\): .*NobodyAtAll"):
        locusts.run("http://127.0.0.1:9", load, tmp_path)


def test_a_user_that_fails_by_itself_is_seen(tmp_path):
    load = Load({"Broken": 1}, 1, options={"jobs-per-user": 10, "patience": 2})
    own = str(ROOT / "loadtests" / "locustfile.py")
    with fake("none", tmp_path / "fake") as (url, log):
        process = start(url, load, tmp_path / "recording", **{own: str(ROOT / "tests/loadtests/broken_locustfile.py")})
        process.wait(60)
    recording = Recording.read(tmp_path / "recording")
    requests = recording.requests
    assert len(noted(log)) == (requests.outcomes == outcome.OK).sum() == 10
    assert (requests.outcomes == outcome.RIG_ERROR).sum() == 5
    assert recording.jobs.outcomes.tolist().count(outcome.RIG_ERROR) == 5
    assert outcome.RIG_ERROR in recording.examples
    assert "it failed 10 times" in str(Generator.of(recording))


def test_a_step_of_the_wall_clock_changes_no_times(monkeypatch):
    before = now()
    assert abs(before - time.time()) < 1
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= now() - before < 60


POLITE = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(print('cleaned up')))\n"
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


@pytest.mark.parametrize(("program", "said"), [(POLITE, "ready\ncleaned up\n"), (DEAF, "ready\n")])
def test_locust_is_ended_in_order_if_it_lets_itself(program, said):
    process = subprocess.Popen(
        [sys.executable, "-c", program + "print('ready', flush=True)\nsignal.pause()"],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    ready = process.stdout.readline()
    stop(process, 5 if program == POLITE else 0.2)
    assert process.returncode is not None
    assert ready + process.stdout.read() == said
