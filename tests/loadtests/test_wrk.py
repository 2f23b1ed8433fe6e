"""The counts and response times of wrk, compared with the counts of a server."""

import re
import socket

import pytest

from loadtests import wrk
from loadtests.service import ServiceError
from tests.programs import needs

CONNECTIONS = 3


def test_wrk_counts_requests_that_server_received(server):
    load = wrk.run(f"{server.url}/200?gtName=x", seconds=1, connections=CONNECTIONS)
    assert 0 <= len(server.paths) - load.requests <= CONNECTIONS
    assert load.requests > 10
    assert load.rate == pytest.approx(load.requests / load.seconds)
    assert load.bytes >= load.requests * len("[]")
    assert load.errors == 0
    assert 0 < load.p50 <= load.p95 <= load.p99 <= load.max
    assert 0 < load.client_share < 1


@pytest.mark.parametrize(("status", "refused"), [(200, False), (503, True)])
def test_wrk_counts_responses_by_status(server, status, refused):
    load = wrk.run(f"{server.url}/{status}?gtName=x", seconds=1, connections=CONNECTIONS, count_statuses=True)
    assert load.statuses == {status: load.requests}
    assert 0 <= server.statuses[status] - load.requests <= CONNECTIONS
    assert load.refused == load.errors == (load.requests if refused else 0)


def test_wrk_counts_error_statuses_without_count_statuses(server):
    load = wrk.run(f"{server.url}/404?gtName=x", seconds=1, connections=CONNECTIONS)
    assert load.refused == load.errors == load.requests > 0


@needs("wrk")
def test_wrk_fails_without_server():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(RuntimeError, match="wrk failed"):
            wrk.run(f"http://127.0.0.1:{closed.getsockname()[1]}/200?x", seconds=1, connections=1)


def test_wrk_repeats_random_moments_of_same_seed(server):
    def requested(seed):
        server.paths.clear()
        wrk.run(f"{server.url}/200?gtName=x", seconds=1, connections=1, seed=seed)
        return [re.findall(r"IOV=(\d+)", path) for path in server.paths]

    first, again, other = requested(1), requested(1), requested(2)
    assert first[:10] == again[:10] != other[:10]
    majors = [int(major) for major, _ in first]
    assert all(0 <= int(number) < 2**31 for pair in first for number in pair)
    assert min(majors) < 2**29 < 3 * 2**29 < max(majors)


@pytest.mark.parametrize(
    ("mode", "query"),
    [
        ("last", "&majorIOV=2147483647&minorIOV=2147483647"),
        ("fixed", ""),
    ],
)
def test_wrk_sends_moments_of_other_patterns(server, mode, query):
    wrk.run(f"{server.url}/200?gtName=x", seconds=1, connections=1, mode=mode)
    assert set(server.paths) == {f"/200?gtName=x{query}"}


def test_missing_wrk_is_reported_with_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ServiceError, match=r"^wrk .*apt-get install wrk$"):
        wrk.run("http://127.0.0.1:1/", seconds=1, connections=1)
