"""`make chaos`: its clients detect wrong responses, and the service survives some faults."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import psutil

from cdb.env import ROOT
from loadtests.chaos.__main__ import Played
from loadtests.chaos.log import ANSWERED, DROPPED, WRONG, Log, Record
from loadtests.chaos.oracle import WrittenTag
from loadtests.chaos.stage import Fault
from loadtests.recording import REFUSED
from tests.programs import needs

FAULT = Fault("a", "nothing", "the start", lambda _: None)


def test_oracle_finds_lost_repeated_and_unknown_rows():
    def lost(*numbers):
        rows = [{"payload_url": f"written-00/{number}"} for number in numbers]
        return WrittenTag("written", [3], [2]).lost(
            {"payload_lists": [{"payload_type": "written-00", "payload_iov": rows}]}
        )

    assert lost(0, 1, 2) == lost(0, 1, 2, 3) == []
    assert lost(0, 2) == ["written-00/1 is lost"]
    assert lost(0, 1, 2, 2) == ["written-00/2 is there 2 times"]
    assert lost(0, 1, 2, 4) == ["written-00/4 was never sent"]


def test_chaos_row_has_outcomes_and_times_of_requests():
    records = [
        Record(1, 1.5, ANSWERED),
        Record(2, 2.1, REFUSED),
        Record(11.0, 14.0, REFUSED),
        Record(12, 12.1, ANSWERED),
        Record(11.5, 90, DROPPED),
        Record(3, 3.1, WRONG),
    ]
    played = Played(FAULT, Log(records, reconnected=7), returned=10.0, lost=["a/1 is lost"])
    assert list(played.cells.values())[:-1] == ["a", 6, 2, 2, 1, 1, 1, 7, 3.0, 1.5]
    assert not played.is_good
    assert Played(FAULT, Log(records[:2]), returned=10.0).is_good
    assert not Played(FAULT, Log(records[:3]), returned=8.9).is_good


def test_connections_may_end_only_while_their_server_is_away():
    dropped, away = Log([Record(2, 2.1, DROPPED)]), replace(FAULT, ends_connections=True)
    assert not Played(FAULT, dropped, returned=10.0).is_good
    assert Played(away, dropped, returned=10.0).is_good
    assert not Played(away, dropped, returned=-1.0).is_good


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
