"""`make chaos`: its clients detect wrong responses, and the service survives some faults."""

import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from cdb.env import ROOT
from loadtests.chaos.__main__ import Played
from loadtests.chaos.clients import Scene, read, run, write
from loadtests.chaos.log import ANSWERED, DROPPED, WRONG, Log, Record
from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.chaos.stage import Fault
from loadtests.client import Client, DroppedError, Response
from loadtests.recording import REFUSED
from tests.loadtests.small_service import SCENARIO, SmallService
from tests.programs import needs

FAULT = Fault("a", "nothing", "the start", lambda _: None)


def response(said, status=200, **headers):
    return Response(status, headers, json.dumps(said).encode())


def play(fault, seconds=1.5):
    """The results of two readers and a writer that sent requests to a service with a fault."""
    with SmallService(fault) as server:
        threading.Thread(target=server.serve_forever).start()
        written = WrittenTag("written", [-1], [-1])
        scene = Scene(
            f"http://127.0.0.1:{server.server_port}", FrozenTag("frozen", SCENARIO), written, threading.Event()
        )
        log = Log()
        loops = [(read, 0), (read, 1), (write, 0)]
        threads = [threading.Thread(target=run, args=(loop, scene, log, number, 0.005)) for loop, number in loops]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        scene.over.set()
        for thread in threads:
            thread.join()
        server.shutdown()
    lists = [
        {"payload_type": name, "payload_iov": [{"payload_url": f"{name}/{number}"} for number in numbers]}
        for name, numbers in server.rows.items()
    ]
    played = Played(FAULT, log, returned=time.monotonic(), lost=written.lost({"payload_lists": lists}))
    assert played.cells["answered"] > 50
    return played


@pytest.mark.parametrize(
    ("fault", "column"),
    [
        ("lies", "wrong"), ("is_stale", "wrong"), ("fails", "wrong"), ("forgets", "lost"),
        ("resets", "dropped"), ("cuts", "dropped"), ("page", "dropped"), ("refuses", "504"), (None, None),
    ],
)  # fmt: skip
def test_chaos_clients_detect_service_that(fault, column):
    cells = play(fault).cells
    for name in ("wrong", "lost", "dropped", "504"):
        # A row that is missing at the end is missing in responses, too.
        assert (cells[name] > 0) == (name == column) or (fault == "forgets" and name == "wrong"), (name, cells)


def test_refused_connection_counts_as_dropped():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(DroppedError):
            Client(f"http://127.0.0.1:{probe.getsockname()[1]}", keep_alive=False).request("GET", "globalTags")


def test_client_reconnects_after_server_closed_idle_connection():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            for _ in range(3):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")

        threading.Thread(target=serve, daemon=True).start()
        client = Client(f"http://127.0.0.1:{server.getsockname()[1]}")
        for _ in range(3):
            assert client.request("GET", "globalTags").json == []
            time.sleep(0.1)
        assert client.reconnected == 2


def test_504_is_refusal_only_if_client_can_retry():
    assert response({"detail": "", "code": ""}, 504, **{"retry-after": "5"}).is_refusal
    assert not response({"detail": "", "code": ""}, 504).is_refusal
    assert not response({"detail": ""}, 504, **{"retry-after": "5"}).is_refusal
    assert not response({"detail": "", "code": ""}, 503, **{"retry-after": "5"}).is_refusal


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
    names = ["postgresql-kill", "worker-kill"]
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
