"""One running service for all end-to-end tests of a worker, and more for those that stop or kill theirs."""

from pathlib import Path

import pytest

from tests.e2e.service import JobClient, Service


def pytest_collection_modifyitems(items):
    # The tests of a file stay together, so that one service serves them.
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    running = Service(tmp_path_factory.mktemp("service")).start()
    yield running
    running.stop()


@pytest.fixture
def client(service):
    return JobClient(service.port)


@pytest.fixture
def fresh(tmp_path):
    """Makes services of the test's own; what is left running at its end is killed."""
    made = []

    def make(name="data", **settings):
        made.append(Service(tmp_path / name, **settings))
        return made[-1]

    yield make
    for one in made:
        if hasattr(one, "process"):
            one.kill_everything()
