"""`make chaos`: the service survives a fault under load, and the report says so."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from cdb.env import ROOT
from tests.programs import needs


@needs("nginx")
def test_service_survives_some_faults():
    # The account of PostgreSQL cannot read the directories of pytest.
    directory = Path(tempfile.mkdtemp(prefix="cdb-chaos-"))
    names = ["postgresql-kill"]
    try:
        chosen = [argument for name in names for argument in ("--only", name)]
        played = subprocess.run(
            [sys.executable, "-m", "loadtests.chaos", "--seconds", "2", *chosen],
            cwd=ROOT,
            env=os.environ | {"CDB_DATA_DIR": str(directory)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert played.returncode == 0, played.stdout + played.stderr
        with (directory / "chaos" / "figures.csv").open(newline="") as file:
            found = list(csv.DictReader(file))
        assert [row["fault"] for row in found] == names
        numbers = ("answered", "504", "dropped", "wrong", "lost", "recovery")
        rows = [{name: float(row[name]) for name in numbers} for row in found]
        for row in rows:
            assert row["answered"] > 100, row
            # Times are not tested, because other tests run at the same time.
            assert (row["dropped"], row["wrong"], row["lost"]) == (0, 0, 0), played.stdout
            assert row["recovery"] < 20, row
        assert "Too short for a verdict: the faults lasted 2 s instead of 30 s." in played.stdout
        assert (directory / "chaos" / "report.html").read_text().count("<img") == len(names)
        assert not [process for process in psutil.process_iter(["cwd"]) if str(directory) in str(process.info["cwd"])]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
