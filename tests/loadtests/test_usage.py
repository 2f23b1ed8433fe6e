"""CPU time and memory, as the bench reads them."""

import os
import subprocess
import sys
import time

import psutil

from loadtests.service import Settings, run_command
from loadtests.usage import family_cpu, measured, peak_of

BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"


def test_the_time_of_children_counts_while_they_live_and_afterwards():
    script = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {BURN!r}])\nprint(flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        assert family_cpu(psutil.Process(process.pid)) >= 0.25
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_usage_inside_a_block():
    myself = psutil.Process(os.getpid())
    with measured(None, myself) as used:
        exec(BURN)
    assert used.gunicorn == 0
    assert used.postgres >= 0.2
    assert used.whole >= 0.2


def test_the_largest_value_of_a_block_is_seen():
    values = iter([5, 9, 7])
    with peak_of(lambda: next(values, 1)) as peak:
        time.sleep(0.2)
    assert peak == [5, 9]


def test_a_command_tells_its_code_output_and_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("CDB_THREADS", "77")
    code = "import os, sys; block = b'x' * 50_000_000; print(sorted(os.environ)); sys.exit(3)"
    done = run_command(Settings(tmp_path, {"DATABASE_URL": "postgresql://x"}), "-c", code)
    assert done.code == 3
    assert done.peak_bytes > 50_000_000
    assert "'DATABASE_URL'" in done.output
    # What is set in the shell of whoever measures does not decide what is measured.
    assert "CDB_THREADS" not in done.output
