"""Fixtures: one running service for all end-to-end tests of a process, and separate ones for tests that stop theirs."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import psutil
import pytest
import requests
from playwright.sync_api import expect, sync_playwright

from tests.e2e.clients import AccessLog, tabs
from tests.e2e.pair import ServerPair
from tests.e2e.service import JobClient, Service
from tests.programs import require


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # The tests of a file stay together, so that one service serves them.
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@contextlib.contextmanager
def directory():
    """A directory outside of pytest's own, which pytest closes to other accounts, the server's among them.

    It is removed as soon as possible: each has a database, and there are some 200 in a run.
    """
    made = Path(tempfile.mkdtemp(prefix="cdb-e2e-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def new_directory():
    """Makes directories for the tests of a file (`directory`)."""
    with contextlib.ExitStack() as made:
        yield lambda: made.enter_context(directory())


@pytest.fixture(scope="session")
def service():
    # With as many processes as this machine has by default.
    with directory() as parent, Service(parent / "data", CDB_WORKERS="0").running() as running:
        yield running


@pytest.fixture(scope="session")
def needs_packages():
    """Skips where nginx is missing."""
    require("nginx")


@pytest.fixture(scope="session")
def served(needs_packages):
    """The same in the production shape."""
    with directory() as parent, Service(parent / "data", "serve", CDB_WORKERS="0").running() as running:
        yield running


@pytest.fixture
def log(served):
    return AccessLog(served)


@pytest.fixture
def client(service):
    return JobClient(service.port)


@pytest.fixture
def fresh():
    """Makes services of the test's own; what is left running at its end is killed."""
    made = []

    with directory() as parent:

        def make(name="data", command="run", **settings):
            made.append(Service(parent / name, command, **settings))
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
def pair(new_directory):
    """A primary and its standby, without a service."""
    with ServerPair(new_directory()).running() as servers:
        yield servers


@pytest.fixture
def small(fresh):
    """A service with two threads, in whose queue no request waits for longer than a second."""
    return fresh(
        CDB_THREADS="2", CDB_QUEUE_TIMEOUT_SECONDS="1", CDB_LOCK_TIMEOUT_SECONDS="30", CDB_LOOKUP_TIMEOUT_SECONDS="30"
    ).start()


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
