"""CPU time and memory, as the bench reads them."""

import os
import subprocess
import sys
from types import SimpleNamespace

import psutil

from loadtests.service import Settings, run_command
from loadtests.usage import family_cpu, measured, peak_of_workers

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"

ALLOCATE = (
    "for size in (300, 50):\n    block = b'x' * (size * 2**20)\n    del block\n    print(flush=True)\n    input()\n"
)


def test_family_cpu_includes_running_and_ended_children():
    script = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {BURN!r}])\nprint(flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        assert family_cpu(psutil.Process(process.pid)) >= 0.25
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_measured_has_cpu_of_block():
    myself = psutil.Process(os.getpid())
    with measured(postgres=myself) as used:
        exec(BURN)
    assert set(used) == {"postgres", "whole"}
    assert min(used.values()) >= 0.2


def test_peak_of_workers_is_largest_of_block():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", ALLOCATE], **pipes)
    try:
        process.stdout.readline()
        with peak_of_workers(SimpleNamespace(children=lambda: [psutil.Process(process.pid)])) as memory:
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
    # Not the 300 MiB before the block.
    assert 50 < memory["worker_peak_mib"] < 150


def test_run_to_end_returns_code_output_and_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("CDB_THREADS", "77")
    code = "import os, sys; block = b'x' * 50_000_000; print(sorted(os.environ)); sys.exit(3)"
    done = run_command(Settings(tmp_path, {"DATABASE_URL": "postgresql://x"}), "-c", code)
    assert done.code == 3
    assert done.peak_bytes > 50_000_000
    assert "'DATABASE_URL'" in done.output
    # Variables in the shell of the operator must not change the measurement.
    assert "CDB_THREADS" not in done.output
