"""nginx processes that crash: their counts in shared memory do not remain."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cdb.env import ROOT
from tests.e2e.faults import LOOKUP
from tests.e2e.refused import request
from tests.e2e.service import JobClient, free_port, raw
from tests.e2e.test_nginx_cache import UNLOCKED, ask

MOST = 30


@contextlib.contextmanager
def lookups_in_progress(service, number):
    """Lookups that gunicorn does not answer inside of the block; those that nginx refuses are counted."""
    workers = service.programs("gunicorn_master lookups")
    for process in workers:
        process.send_signal(signal.SIGSTOP)
    connections = []
    try:
        for _ in range(number):
            connections.append(socket.create_connection(("127.0.0.1", service.port), timeout=60))
            connections[-1].sendall(request(b"GET", LOOKUP.encode() + b"&strict=1"))
        time.sleep(1)
        yield len(select.select(connections, [], [], 0)[0])
    finally:
        for process in workers:
            process.send_signal(signal.SIGCONT)
        for connection in connections:
            connection.close()


@pytest.fixture
def limited(fresh, needs_packages):
    """A service whose nginx takes few lookups at a time."""
    service = fresh(command="serve").start()
    configuration = service.data / "serve" / "nginx.conf"
    text = configuration.read_text()
    assert "lookups_in_progress 12000" in text
    configuration.write_text(text.replace("lookups_in_progress 12000", f"lookups_in_progress {MOST}"))
    [master] = service.programs("nginx: master")
    old = {process.pid for process in service.programs("nginx: worker")}
    master.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 60
    while old & {process.pid for process in service.programs("nginx: worker")}:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    yield service
    assert service.stop() == 0
    assert service.family() == []


def test_the_limit_is_whole_again_after_a_crash_and_no_connection_is_refused(limited):
    with lookups_in_progress(limited, MOST + 1) as refused:
        assert refused == 1
    [master] = limited.programs("nginx: master")
    with lookups_in_progress(limited, MOST - 5):
        for process in limited.programs("nginx: worker"):
            process.kill()
        deadline = time.monotonic() + 60
        while "A worker of nginx crashed; nginx was restarted." not in limited.lines:
            assert time.monotonic() < deadline, limited.lines
            # The port is there all the time.
            assert raw(limited.port, b"GET /nowhere HTTP/1.0\r\n\r\n")[0] == 404
    assert master.wait(60) is not None or not master.is_running()
    with lookups_in_progress(limited, MOST) as refused:
        assert refused == 0
    # nginx needs a moment to notice that these clients have gone.
    while ask(limited, "GET", UNLOCKED)[0] != 200:
        assert time.monotonic() < deadline
    assert JobClient(limited.port).call("POST", "pt", {"name": "AfterCrash"})[0] == 200
    # Nor does it end when its logs are removed; nginx opens others.
    for log in (limited.data / "serve").glob("*.log"):
        log.unlink()
    while not all((limited.data / "serve" / name).exists() for name in ("access.log", "error.log", "alerts.log")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    ask(limited, "GET", UNLOCKED)
    while not (limited.data / "serve" / "access.log").stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def children(process_id):
    return [int(child) for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]


def test_the_container_of_nginx_does_the_same(needs_packages, new_directory):
    directory, port = new_directory(), free_port()
    places = [f"--{name}={directory / name}" for name in ("directory", "cache", "temporary")]
    places += ["--lookups=127.0.0.1:1", "--others=127.0.0.1:1"]
    keeper = subprocess.Popen(
        [sys.executable, "-m", "cdb.serving.containers", "nginx", f"--listen=127.0.0.1:{port}", *places],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    status = b"GET /nginx-status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    try:
        deadline = time.monotonic() + 60
        while not (started := [child for master in children(keeper.pid) for child in children(master)]):
            assert time.monotonic() < deadline and keeper.poll() is None
            time.sleep(0.1)
        [master] = children(keeper.pid)
        assert raw(port, status)[0] == 200
        os.kill(started[0], signal.SIGKILL)
        while (line := keeper.stderr.readline()) != "cdb: a worker of nginx crashed; nginx was restarted\n":
            assert line, "the container ended"
        assert raw(port, status)[0] == 200
        while master in children(keeper.pid):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        keeper.send_signal(signal.SIGQUIT)
        assert keeper.wait(60) == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    finally:
        keeper.kill()
        keeper.wait()
