"""A PostgreSQL server that accepts connections and does not respond, because its processes are stopped."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.faults import LOOKUP, frozen_database, respond_to_all, seconds, wait_for_recovery
from tests.e2e.service import JobClient, raw

# The deadline is a second after the timeout, looked at four times a second; the rest is for a busy machine.
BOUND_SECONDS = 8


@pytest.fixture
def service(fresh):
    return fresh(CDB_LOOKUP_TIMEOUT_SECONDS="1").start()


def open_files(service):
    return sum(process.num_fds() for process in service.programs("gunicorn"))


def test_every_request_is_answered_in_time_and_all_is_well_afterwards(service):
    assert respond_to_all(service)
    files = open_files(service)
    calls = [
        ("GET", LOOKUP),
        ("GET", "globalTags"),
        ("GET", "globalTag/tiny"),
        ("GET", "pt?page=1"),
        ("GET", "gt"),
        ("POST", "pt", {"name": "Frozen"}),
        ("POST", "cloneGlobalTag/tiny/other"),
    ]

    def call(number):
        method, path, *body = calls[number % len(calls)]
        begin = time.monotonic()
        status, answer = JobClient(service.port).call(method, path, *body)
        return status, answer["code"], time.monotonic() - begin

    with frozen_database(service), ThreadPoolExecutor(28) as pool:
        answers = list(pool.map(call, range(140)))
    assert {(status, code) for status, code, _ in answers} == {(504, "database_unavailable")}
    assert max(spent for _, _, spent in answers) < BOUND_SECONDS
    wait_for_recovery(service)
    assert open_files(service) <= files + 4
    assert JobClient(service.port).call("POST", "pt", {"name": "Frozen"})[0] == 200


def test_readiness_says_so_soon(service):
    def ready():
        return raw(service.port, b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    assert ready()[0] == 200
    with frozen_database(service):
        for _ in range(6):
            begin = time.monotonic()
            status, _, body = ready()
            assert (status, b"database_unavailable" in body) == (503, True)
            assert time.monotonic() - begin < 7
    deadline = time.monotonic() + 60
    while ready()[0] != 200:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_requests_do_not_wait_one_after_the_other(service):
    """Those that come when it is known that the database is away are told at once."""
    with frozen_database(service):
        with ThreadPoolExecutor(24) as pool:
            list(pool.map(lambda _: JobClient(service.port).call("GET", LOOKUP), range(48)))
        with ThreadPoolExecutor(24) as pool:
            spent = seconds(lambda: list(pool.map(lambda _: JobClient(service.port).call("GET", LOOKUP), range(1000))))
    # One at a time in each of a dozen threads would be minutes.
    assert spent < 20
    wait_for_recovery(service)
