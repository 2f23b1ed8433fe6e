"""Reloading `make serve` with new code and new settings, without losing a request."""

import http.client
import json
import signal
import socket
import subprocess
import threading
import time

import psutil
import pytest

from cdb.env import ROOT
from tests.e2e.service import JobClient
from tests.programs import needs

pytestmark = pytest.mark.usefixtures("needs_packages")

RELOADED = "Reloaded: the new processes respond."


class Load(threading.Thread):
    """Asks over and over, on one connection or on a new one each time; `failures` is whatever was not answered with 200."""

    def __init__(self, port, number, *, keeps, writes):
        super().__init__(daemon=True)
        self.port, self.number, self.keeps, self.writes = port, number, keeps, writes
        self.done = threading.Event()
        self.answered, self.failures = 0, []

    def run(self):
        connection, turn = None, 0
        while not self.done.is_set():
            turn += 1
            if connection is None or not self.keeps:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                if self.writes:
                    body = json.dumps({"name": f"type{self.number}_{turn}"})
                    connection.request("POST", "/api/cdb_rest/pt", body, {"Content-Type": "application/json"})
                else:
                    path = "gt" if turn % 20 == 0 else f"payloadiovs/?gtName=tiny&majorIOV={turn % 30}&minorIOV=0"
                    connection.request("GET", f"/api/cdb_rest/{path}")
                response = connection.getresponse()
                json.loads(response.read())
                if response.status == 200:
                    self.answered += 1
                else:
                    self.failures.append(response.status)
                # Otherwise the clients take most of the processors that the new processes need to start.
                time.sleep(0.2)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.failures.append(repr(error))
                connection = None


def test_deploying_under_load_loses_no_request_and_no_write(fresh):
    service = fresh(command="serve", SCENARIO="tiny").start()
    load = [Load(service.port, number, keeps=number % 2, writes=number % 4 > 1) for number in range(12)]
    for one in load:
        one.start()
    before = {process.pid for process in service.programs("gunicorn_master")}
    for times in (1, 2):
        service.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 120
        while service.lines.count(RELOADED) < times:
            assert time.monotonic() < deadline, service.lines
            time.sleep(0.1)
    time.sleep(1)
    for one in load:
        one.done.set()
    for one in load:
        one.join(60)
    assert [failure for one in load for failure in one.failures] == []
    assert all(one.answered for one in load)
    found = JobClient(service.port).get("pt")
    assert len(found) - 10 == sum(one.answered for one in load if one.writes)
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in before if psutil.pid_exists(pid)], 30)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert service.stop() == 0
    assert service.family() == []


def test_deploying_takes_new_settings_over_and_what_does_not_start_changes_nothing(fresh, new_directory):
    settings = new_directory() / "settings"
    settings.write_text("CDB_MAX_BODY_BYTES=2000\nCDB_PAYLOAD_BASE_URL=old\n")
    service = fresh(command="serve", CDB_ENV_FILE=str(settings)).start()
    client = JobClient(service.port)
    large = {"name": "x" * 5000}
    assert client.call("POST", "pt", large)[0] == 413
    for wrong, reason in (
        ("CDB_THREADS=none", "cdb: CDB_THREADS: Not a valid integer (got none)"),
        (
            "CDB_IOV_MODE=discrete",
            "CommandError: not reloaded, the old processes continue: cdb: the database was created with",
        ),
    ):
        settings.write_text(f"{wrong}\nCDB_PAYLOAD_BASE_URL=new\n")
        failed = service.manage("reload")
        assert failed.returncode == 1 and len(failed.stderr.splitlines()) == 1
        assert failed.stderr.startswith(reason)
        assert client.get("user_settings/CDB_PAYLOAD_BASE_URL") == {"CDB_PAYLOAD_BASE_URL": "old"}
    settings.write_text("CDB_PAYLOAD_BASE_URL=new\n")
    reloaded = service.manage("reload")
    assert reloaded.returncode == 0, reloaded.stderr
    assert reloaded.stdout.splitlines()[-1].startswith("Reloaded: the new processes respond (")
    assert service.lines[-1] == RELOADED
    # An old process that was just told to end may still take what comes in that moment.
    deadline = time.monotonic() + 30
    while client.get("user_settings/CDB_PAYLOAD_BASE_URL") != {"CDB_PAYLOAD_BASE_URL": "new"}:
        assert time.monotonic() < deadline
    # nginx has its new limit as well.
    deadline = time.monotonic() + 30
    while client.call("POST", "pt", large | {"comment": "x" * 100_000})[0] == 413:
        assert time.monotonic() < deadline
    assert service.stop() == 0
    assert service.family() == []


def test_a_reload_of_nothing_is_one_clear_line(fresh, service):
    for one in (fresh(), service):
        refused = one.manage("reload")
        assert (refused.returncode, refused.stdout) == (1, "Reloading.\n")
        assert refused.stderr == (f"CommandError: no make serve runs with {one.data / 'serve'}; check CDB_DATA_DIR\n")


def test_the_process_to_signal_is_in_a_file_while_it_serves(served, fresh):
    file = served.data / "serve" / "serve.pid"
    assert int(file.read_text()) == served.process.pid
    own = fresh(command="serve", SCENARIO="none").start()
    own.stop()
    assert not (own.data / "serve" / "serve.pid").exists()


def test_a_service_manager_is_told_when_it_serves_and_when_it_stops(fresh):
    service = fresh(command="serve", SCENARIO="none")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = service.data.parent / "notify"
        manager.bind(str(address))
        manager.settimeout(60)
        service.environment["NOTIFY_SOCKET"] = str(address)
        service.start()
        assert manager.recv(100) == b"READY=1"
        service.stop()
        assert manager.recv(100) == b"STOPPING=1"


@needs("systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / "cdb.service"
    text = (ROOT / "deploy" / "systemd" / "cdb.service").read_text()
    unit.write_text(text.replace("/srv/cdb", str(ROOT)).replace("User=cdb", "User=daemon"))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
