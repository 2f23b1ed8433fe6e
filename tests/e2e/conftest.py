"""One running service for all end-to-end tests of a worker, and more for those that stop or kill theirs."""

import shutil
import tempfile
from pathlib import Path

import pytest

from cdb.env import ConfigurationError
from cdb.serving.program import PACKAGES, find
from tests.e2e.service import JobClient, Service


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
    running = Service(new_directory() / "data").start()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def needs_packages():
    """Skips where nginx or PgBouncer is missing."""
    for name in PACKAGES:
        try:
            find(name)
        except ConfigurationError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def served(needs_packages, new_directory):
    """The same in the production shape."""
    running = Service(new_directory() / "data", "serve").start()
    yield running
    running.stop()


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
