"""Fixtures: one running service for all end-to-end tests of a process, and separate ones for tests that stop theirs."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil
import pytest
import requests
from playwright.sync_api import expect, sync_playwright

from tests.e2e.backed import Backed
from tests.e2e.behind_nginx import AccessLog
from tests.e2e.service import JobClient, Service, after_first_start
from tests.e2e.web import tabs
from tests.programs import require


def pytest_collection_modifyitems(items):
    # The tests of a file stay together, so that one service serves them.
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def new_directory():
    """Makes directories outside of pytest's own, which pytest closes to other accounts, the server's among them."""
    made = []

    def make():
        made.append(Path(tempfile.mkdtemp(prefix="cdb-e2e-")))
        return made[-1]

    yield make
    for directory in made:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def service(new_directory):
    with Service(new_directory() / "data").running() as running:
        yield running


@pytest.fixture(scope="session")
def needs_packages():
    """Skips where nginx or PgBouncer is missing."""
    require("nginx", "pgbouncer")


@pytest.fixture(scope="session")
def served(needs_packages, new_directory):
    """The same in the production shape."""
    with Service(new_directory() / "data", "serve").running() as running:
        yield running


@pytest.fixture
def log(served):
    return AccessLog(served)


@pytest.fixture
def client(service):
    return JobClient(service.port)


@pytest.fixture
def fresh(new_directory):
    """Makes services of the test's own; what is left running at its end is killed."""
    directory = new_directory()
    made = []

    def make(name="data", command="run", **settings):
        made.append(Service(directory / name, command, **settings))
        return made[-1]

    yield make
    for one in made:
        one.kill_everything()


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window; none of its processes stays."""
    require("chromium-headless-shell")
    earlier = set(psutil.Process().children())
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    expect.set_options(timeout=20_000)
    with sync_playwright() as playwright:
        program = shutil.which("chromium-headless-shell")
        running = playwright.chromium.launch(executable_path=program, args=flags)
        drivers = set(psutil.Process().children()) - earlier
        started = {*drivers, *(process for driver in drivers for process in driver.children(recursive=True))}
        yield running
        running.close()
    _, left = psutil.wait_procs(started, timeout=10)
    for process in left:
        process.kill()
    assert not left


@pytest.fixture
def small(fresh):
    """A service with two threads, in whose queue no request waits for longer than a second."""
    return fresh(
        CDB_WORKERS="1",
        CDB_THREADS="2",
        CDB_QUEUE_TIMEOUT_SECONDS="1",
        CDB_LOCK_TIMEOUT_SECONDS="30",
        CDB_LOOKUP_TIMEOUT_SECONDS="30",
    ).start()


@pytest.fixture
def backed(new_directory):
    directory = new_directory()
    directory.chmod(0o711)
    prepared = after_first_start({"SCENARIO": "tiny", "CDB_IOV_MODE": "continuous"})
    subprocess.run(["cp", "--archive", prepared / "postgres", directory], check=True)
    return Backed(directory)


@pytest.fixture(scope="module")
def web_address(service):
    """The address of a service with the tags tiny, and patch, a copy with a change."""
    api = f"http://127.0.0.1:{service.port}/api/cdb_rest/"
    assert requests.post(f"{api}global-tags/tiny/clone/patch", timeout=20).status_code == 200
    row = {"global_tag": "patch", "payload_type": "Pixel_Alignment", "payload_url": "pixel/v2.root", "checksum": "1"}
    row |= {"since": [5, 0], "until": [6, 0]}
    assert requests.post(f"{api}payload-iovs/insert", json=row, timeout=20).status_code == 200
    yield f"http://127.0.0.1:{service.port}"
    assert requests.delete(f"{api}deleteGlobalTag/patch", timeout=20).status_code == 200


@pytest.fixture
def tab(browser, web_address):
    with tabs(browser, web_address) as open_tab:
        yield open_tab
