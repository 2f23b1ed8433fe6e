"""A smoke test of `make run`: it starts, a payload that is inserted is found, and a signal stops all of it."""

import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from tests.e2e.service import JobClient, Service


@pytest.fixture
def service():
    # Not in pytest's own directory, which is closed to the account that runs PostgreSQL.
    directory = Path(tempfile.mkdtemp(prefix="cdb-smoke-"))
    service = Service(directory / "data", is_first_start=True)
    yield service
    service.kill_everything()
    shutil.rmtree(directory)


def test_the_service_starts_serves_and_stops(service):
    service.start()
    client = JobClient(service.port)
    assert len(client.get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10
    assert client.call("POST", "gt", {"name": "smoke", "status": "unlocked"})[0] == 200
    assert client.call("POST", "pt", {"name": "Smoke"})[0] == 200
    row = {"global_tag": "smoke", "payload_type": "Smoke", "payload_url": "a.root", "checksum": "c"}
    assert client.call("POST", "payload-iovs/insert", row | {"since": [3, 0], "until": "open"})[0] == 200
    [found] = client.get("payloadiovs/?gtName=smoke&majorIOV=5&minorIOV=0")
    assert found[1] == "a.root"
    assert service.stop(signal.SIGTERM) == 0
    assert service.family() == []
