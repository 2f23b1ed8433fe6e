"""`make chaos`: that its clients notice what is wrong, and what the service does under a few of its faults."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest

from cdb.env import ROOT
from loadtests.chaos.clients import (
    ANSWERED,
    DROPPED,
    REFUSED,
    WRONG,
    Log,
    Record,
    Scene,
    read_kept_connection,
    read_new_connections,
    write,
)
from loadtests.chaos.oracle import FrozenTag, WrittenTag
from loadtests.chaos.report import Row, judge, table
from loadtests.client import Client, DroppedError, Response
from tests.loadtests.small_service import DOCUMENT, SmallService
from tests.programs import needs


def response(said, status=200, **headers):
    return Response(status, headers, json.dumps(said).encode())


def play(fault, seconds=1.5):
    """What two readers and a writer meet, and what is lost."""
    with SmallService(fault) as server:
        threading.Thread(target=server.serve_forever).start()
        written = WrittenTag("written", [-1], [-1])
        scene = Scene(f"http://127.0.0.1:{server.server_port}", FrozenTag(DOCUMENT), written, threading.Event())
        log = Log()
        loops = [read_new_connections, read_kept_connection, write]
        threads = [threading.Thread(target=loop, args=(scene, log, 0, 0.005)) for loop in loops]
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
    row = judge(Row("fault", "", ""), log, returned=time.monotonic(), lost=len(written.lost({"payload_lists": lists})))
    assert row.answered > 50
    return row


@pytest.mark.parametrize(
    ("fault", "column"),
    [
        ("lies", "wrong"), ("is_stale", "wrong"), ("fails", "wrong"), ("forgets", "lost"),
        ("resets", "dropped"), ("cuts", "dropped"), ("page", "dropped"), ("refuses", "504"), (None, None),
    ],
)  # fmt: skip
def test_clients_notice_a_service_that(fault, column):
    cells = play(fault).cells()
    for name in ("wrong", "lost", "dropped", "504"):
        # What is missing from a list is wrong in the next answer, too.
        assert (cells[name] > 0) == (name == column) or (fault == "forgets" and name == "wrong"), (name, cells)


def test_nobody_there_is_dropped_as_well():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        with pytest.raises(DroppedError):
            Client(f"http://127.0.0.1:{probe.getsockname()[1]}", keep_alive=False).request("GET", "globalTags")


def test_an_idle_connection_that_was_closed_is_no_fault():
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


def test_a_504_counts_as_one_only_if_it_is_one_that_clients_can_try_again():
    assert response({"detail": "", "code": ""}, 504, **{"retry-after": "5"}).is_refusal
    assert not response({"detail": "", "code": ""}, 504).is_refusal
    assert not response({"detail": ""}, 504, **{"retry-after": "5"}).is_refusal
    assert not response({"detail": "", "code": ""}, 503, **{"retry-after": "5"}).is_refusal


def test_acknowledged_rows_have_to_be_there_once_and_others_must_not():
    def lost(*numbers):
        rows = [{"payload_url": f"written-00/{number}"} for number in numbers]
        return WrittenTag("written", [3], [2]).lost(
            {"payload_lists": [{"payload_type": "written-00", "payload_iov": rows}]}
        )

    assert lost(0, 1, 2) == lost(0, 1, 2, 3) == []
    assert lost(0, 2) == ["written-00/1 is lost"]
    assert lost(0, 1, 2, 2) == ["written-00/2 is there 2 times"]
    assert lost(0, 1, 2, 4) == ["written-00/4 was never sent"]


def test_a_row_of_the_table_says_what_was_met():
    records = [
        Record(1, 1.5, ANSWERED), Record(2, 2.1, REFUSED), Record(11.0, 14.0, REFUSED), Record(12, 12.1, ANSWERED),
        Record(11.5, 90, DROPPED), Record(3, 3.1, WRONG),
    ]  # fmt: skip
    row = judge(Row("a", "", ""), Log(records, reconnected=7), returned=10.0, lost=1)
    assert (row.requests, row.answered, row.refused, row.dropped, row.wrong, row.lost) == (6, 2, 2, 1, 1, 1)
    assert (row.reconnected, row.slowest, row.recovery) == (7, 3.0, 1.5)
    assert "| a | 6 | 2 | 2 | 1 | 1 | 1 | 7 | 3.0 | 1.5 |" in table([row])
    assert not row.is_good
    good = judge(Row("a", "", ""), Log(records[:2]), returned=10.0, lost=0)
    assert good.is_good
    assert not judge(Row("a", "", ""), Log(records[:3]), returned=8.9, lost=0).is_good


@needs("nginx", "pgbouncer")
def test_a_few_faults_in_the_real_service():
    # Outside of pytest's own directories, which are closed to PostgreSQL's account.
    directory = Path(tempfile.mkdtemp(prefix="cdb-chaos-"))
    names = ["postgresql-kill", "postgresql-freeze", "worker-kill"]
    try:
        chosen = [argument for name in names for argument in ("--only", name)]
        played = subprocess.run(
            [sys.executable, "-m", "loadtests.chaos", "--seconds", "2", *chosen],
            cwd=ROOT, env=os.environ | {"CDB_DATA_DIR": str(directory)}, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        rows = json.loads((directory / "chaos" / "chaos.json").read_text())
        assert [row["fault"] for row in rows] == names
        for row in rows:
            assert row["answered"] > 100, row
            # How long it took is not judged here, where other tests run at the same time.
            assert (row["dropped"], row["wrong"], row["lost"]) == (0, 0, 0), played.stdout
            assert row["recovery"] < 20, row
        assert rows[0]["504"] > 0
        assert "Too short for a verdict: the faults lasted 2 s instead of 30 s." in played.stdout
        assert {"chaos.csv", "chaos.md", "chaos.svg"} <= {path.name for path in (directory / "chaos").iterdir()}
        assert not [process for process in psutil.process_iter(["cwd"]) if str(directory) in str(process.info["cwd"])]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
