"""`make bench`: a part, at the smallest size."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas

from cdb.env import ROOT
from tests.programs import needs


@needs("nginx")
def test_parts_are_measured_and_reported():
    with tempfile.TemporaryDirectory(prefix="cdb-bench-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        directory.chmod(0o755)
        words = ["--quick", "--only", "reads", "--scenario", "tiny", "--directory", directory]
        command = [sys.executable, "-m", "loadtests.bench", *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stderr
        [report] = directory.glob("*/report.html")
        figures = pandas.read_csv(report.with_name("figures.csv"))
    assert set(figures["part"]) == {"reads"}
    assert (figures["service_cpu_ms"] > 0).all()
    assert (figures["ratio"] > 0).all() and "÷ lookup" in done.stdout
