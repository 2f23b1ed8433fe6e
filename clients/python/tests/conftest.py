"""Fixtures: a running service, an empty configuration for each test, and the command."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from tests.e2e.conftest import directory, fresh  # noqa: F401 -- a fixture
from tests.e2e.service import Service

CLIENT = Path(__file__).parents[1]
NUMBERS = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # The tests of a file stay together, so that one service serves them.
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(f"client {item.path.stem}"))


@pytest.fixture(scope="session")
def service():
    """A service with the tag tiny, whose writes are open. Tests make objects with names of their own (`new_name`)."""
    with directory() as parent, Service(parent / "data").running() as running:
        yield running


@pytest.fixture
def server(service):
    """The address of the service."""
    return f"http://127.0.0.1:{service.port}"


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    """An empty configuration and an empty cache; no token and no proxy of the developer's. Commands inherit it."""
    for name in list(os.environ):
        if name.startswith(("CDB_", "BEARER_TOKEN", "XDG_RUNTIME_DIR")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CDB_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("CDB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(CLIENT))


def new_name(stem="tag"):
    """A name that no other test of this process uses."""
    return f"{stem}{os.getpid()}x{next(NUMBERS)}"


class Api:
    """Prepares data by plain requests, without the client."""

    def __init__(self, server):
        self.base = f"{server}/api/cdb_rest/"

    def __call__(self, method, path, body=None, **query):
        response = requests.request(method, self.base + path, json=body, params=query, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()

    def make_tag(self, rows, status="unlocked"):
        """A new tag with these rows: (payload type, URL, since, until, further members). Payload types are made if needed."""
        name = new_name()
        self("POST", "gt", {"name": name, "status": "unlocked"})
        known = {one["name"] for one in self("GET", "pt")}
        for payload_type in dict.fromkeys(row[0] for row in rows):
            if payload_type not in known:
                self("POST", "pt", {"name": payload_type})
        columns = ("payload_type", "payload_url", "since", "until")
        body = [
            {"global_tag": name, "checksum": "", **dict(zip(columns, row, strict=False)), **(row[4] if row[4:] else {})}
            for row in rows
        ]
        if body:
            self("POST", "payload-iovs/insert", body)
        if status != "unlocked":
            self("PUT", f"gt_change_status/{name}/locked")
        if status == "frozen":
            self("PUT", f"gt_change_status/{name}/frozen")
        return name


@pytest.fixture
def api(server):
    return Api(server)


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def cdb(server, capsys, monkeypatch):
    """Runs the command in this process, with the service as its server."""
    from cdb_client.cli.main import main

    def run(*arguments):
        monkeypatch.setenv("CDB_SERVER", os.environ.get("CDB_SERVER", server))
        code = main([str(argument) for argument in arguments])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def start(server):
    """Starts the command in a process of its own, with the service as its server; it is killed at the end of the test."""
    started = []

    def popen(*arguments, **environment):
        command = [sys.executable, "-m", "cdb_client", *map(str, arguments)]
        variables, pipe = os.environ | {"CDB_SERVER": server} | environment, subprocess.PIPE
        started.append(
            subprocess.Popen(
                command,
                env=variables,
                stdout=pipe,
                stderr=pipe,
                text=True,
                # A test run in the background of a shell ignores it, and so would what it starts.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        )
        return started[-1]

    yield popen
    for process in started:
        process.kill()
