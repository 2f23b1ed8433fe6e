"""What wrk counts is what a server counts that it asks."""

import re
import socket

import pytest

from loadtests import wrk
from loadtests.bench.parts.crosscheck import statuses_in
from tests.programs import needs

CONNECTIONS = 3


def test_it_counts_what_was_asked_but_for_what_is_under_way_at_the_end(server):
    load = wrk.run(f"{server.url}/200?gtName=x", seconds=1, connections=CONNECTIONS)
    assert 0 <= len(server.paths) - load.requests <= CONNECTIONS
    assert load.requests > 10
    assert load.rate == pytest.approx(load.requests / load.seconds)
    assert load.bytes >= load.requests * len("[]")
    assert load.errors == 0
    assert 0 < load.p50 <= load.p95 <= load.p99 <= load.max
    assert 0 < load.client_share < 1


def test_it_counts_answers_by_status(server):
    load = wrk.run(
        f"{server.url}/200?gtName=x",
        other_url=f"{server.url}/503?gtName=y",
        seconds=1,
        connections=CONNECTIONS,
        count_statuses=True,
    )
    assert sum(load.statuses.values()) == load.requests
    for status, asked in server.statuses.items():
        assert 0 <= asked - load.statuses[status] <= CONNECTIONS
    assert load.refused == load.errors == load.statuses[503]
    # Every tenth question is the other one.
    assert load.statuses[503] == pytest.approx(load.requests / 10, abs=CONNECTIONS)


def test_refusals_are_errors_also_when_they_are_not_told_apart(server):
    load = wrk.run(f"{server.url}/404?gtName=x", seconds=1, connections=CONNECTIONS)
    assert load.refused == load.errors == load.requests > 0


@needs("wrk")
def test_nobody_there_is_no_silent_success():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(RuntimeError, match="wrk failed"):
            wrk.run(f"http://127.0.0.1:{closed.getsockname()[1]}/200?x", seconds=1, connections=1)


def test_random_moments_are_spread_and_come_again_with_the_seed(server):
    def asked(seed):
        server.paths.clear()
        wrk.run(f"{server.url}/200?gtName=x", seconds=1, connections=1, seed=seed)
        return [re.findall(r"IOV=(\d+)", path) for path in server.paths]

    first, again, other = asked(1), asked(1), asked(2)
    assert first[:10] == again[:10] != other[:10]
    majors = [int(major) for major, _ in first]
    assert all(0 <= int(number) < 2**31 for pair in first for number in pair)
    assert min(majors) < 2**29 < 3 * 2**29 < max(majors)


@pytest.mark.parametrize(
    ("mode", "query"),
    [
        ("first", "&majorIOV=0&minorIOV=0"),
        ("last", "&majorIOV=2147483647&minorIOV=2147483647"),
        ("fixed", ""),
    ],
)
def test_other_patterns(server, mode, query):
    wrk.run(f"{server.url}/200?gtName=x", seconds=1, connections=1, mode=mode)
    assert set(server.paths) == {f"/200?gtName=x{query}"}


def test_a_missing_program_is_one_line_with_the_package(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(wrk.MissingProgramError, match=r"^wrk .*apt-get install wrk$"):
        wrk.run("http://127.0.0.1:1/", seconds=1, connections=1)


def test_access_logs_are_counted_by_status(tmp_path):
    log = tmp_path / "access.log"
    log.write_text(
        '127.0.0.1 - - [21/Nov/2026:12:00:00 +0000] "GET /api/cdb_rest/payloadiovs/?gtName=x HTTP/1.1" 200 12 "-" "-"\n'
        '127.0.0.1 - - [21/Nov/2026:12:00:00 +0000] "GET /health/ready HTTP/1.1" 200 12 "-" "-"\n'
        '127.0.0.1 - - [21/Nov/2026:12:00:00 +0000] "GET /api/cdb_rest/payloadiovs/?gtName=y HTTP/1.1" 404 12 "-" "-"\n'
    )
    assert statuses_in(log) == {200: 1, 404: 1}
