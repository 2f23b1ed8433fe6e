"""An overload of lookups: after a burst, those that would wait too long are refused at once, and no other request."""

import http.client
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing

import pytest

from cdb.env import ROOT
from loadtests.service import free_port, frozen
from tests.e2e.behind_nginx import PREFIX
from tests.e2e.counting import Metrics, eventually, workers
from tests.e2e.faults import locked
from tests.e2e.service import JobClient, Service, raw

SETTINGS = {
    "CDB_WORKERS": "1",
    "CDB_THREADS": "2",
    "CDB_BURST_SECONDS": "2",
    "CDB_OVERLOAD_WAIT_SECONDS": "1",
    "CDB_LOOKUP_TIMEOUT_SECONDS": "60",
    "CDB_QUEUE_TIMEOUT_SECONDS": "60",
}
WAITING, REFUSED = 40, 30
HEALTH_CHECK = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def look_up(port, moment):
    return JobClient(port).call("GET", f"payloadiovs/?gtName=tiny&majorIOV=5&minorIOV={moment}")


def refused(port, moment):
    """The error code of a lookup that must be refused."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with closing(connection):
        connection.request("HEAD", f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=5&minorIOV={moment}")
        response = connection.getresponse()
        assert (response.status, response.read()) == (504, b"")
        assert int(response.getheader("Retry-After")) >= 1
    status, document = look_up(port, moment)
    assert status == 504
    return document["code"]


def burst(port, moments):
    """The statuses of very many lookups at the same time."""
    with ThreadPoolExecutor(200) as pool:
        return set(pool.map(lambda moment: look_up(port, moment)[0], moments))


def overload(service, port, code, then):
    """Let lookups wait until further ones are refused with that code, and call `then` meanwhile.

    Returns the statuses of all that waited; the first `WAITING` were there before the overload.
    """
    with ThreadPoolExecutor(WAITING + 400) as pool:
        with locked(service, "PayloadIOV"):
            # Lookups wait for the table.
            waiting = [pool.submit(look_up, port, moment) for moment in range(WAITING)]
            deadline = time.monotonic() + 50
            # Until then, further ones wait as well: some in the kernel's queue.
            while not any(
                one.done() and one.result()[0] == 504 and one.result()[1]["code"] == code for one in waiting[WAITING:]
            ):
                assert time.monotonic() < deadline
                waiting.append(pool.submit(look_up, port, len(waiting)))
                time.sleep(0.02)
            then()
        return [one.result()[0] for one in waiting]


@pytest.fixture(scope="module")
def limited(new_directory, needs_packages):
    """`make serve` with these settings."""
    with Service(new_directory() / "data", "serve", **SETTINGS).running() as service:
        yield service


def test_nginx_refuses_lookups_during_an_overload_and_accepts_bursts_again_after_it(limited):
    codes = set()

    def ask():
        codes.update(refused(limited.port, 10_000 + number) for number in range(REFUSED))

    statuses = overload(limited, limited.port, "service_unavailable", ask)
    assert codes == {"service_unavailable"}
    assert set(statuses[:WAITING]) == {200}
    assert Metrics(limited.port).sum("cdb_overload_seconds_total", pool="lookups") > 0
    eventually(lambda: burst(limited.port, range(20_000, 20_400)), {200})


def test_a_worker_that_is_killed_during_an_overload_leaves_no_short_queue(limited):
    before = workers(limited, "lookups")
    assert len(before) == 1

    def kill():
        before[0].kill()

    overload(limited, limited.port, "service_unavailable", kill)
    assert not before[0].is_running()
    eventually(lambda: burst(limited.port, range(20_000, 20_400)), {200})


def test_lookups_in_the_queue_of_the_kernel_do_not_wait_for_the_end_of_an_overload(limited):
    [worker] = workers(limited, "lookups")
    with ThreadPoolExecutor(WAITING + 200) as pool:
        with locked(limited, "PayloadIOV"):
            waiting = [pool.submit(look_up, limited.port, 30_000 + number) for number in range(WAITING)]
            # The worker has accepted them.
            eventually(lambda: len(worker.net_connections("unix")) >= WAITING, True)
            # When the worker goes on, the time of a burst is over.
            with frozen([worker]):
                late = [pool.submit(look_up, limited.port, 40_000 + number) for number in range(200)]
                time.sleep(3)
            wait(late, timeout=30)
            assert {one.done() and one.result()[0] for one in late} == {504}
        assert 200 in {one.result()[0] for one in waiting}
    eventually(lambda: burst(limited.port, range(20_000, 20_400)), {200})


@pytest.fixture
def lookups_over_tcp(fresh):
    """A service, and the port of another gunicorn instance that has only lookups, as in a container."""
    service = fresh(**SETTINGS).start()
    port = free_port()
    url = f"postgresql://cdb@/cdb?host={service.data}/postgres/socket"
    command = [sys.executable, "-m", "cdb.serving.gunicorn_master", "lookups", "--bind", f"127.0.0.1:{port}"]
    environment = service.environment | {"DATABASE_URL": url, "CDB_DATA_DIR": str(service.data / "second")}
    process = subprocess.Popen([*command, "--workers", "1"], cwd=ROOT, env=environment, start_new_session=True)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                assert look_up(port, 0)[0] == 200
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield service, port
    finally:
        process.terminate()
        process.wait(30)


def test_gunicorn_refuses_lookups_that_arrive_by_tcp_but_no_health_checks(lookups_over_tcp):
    service, port = lookups_over_tcp
    codes, healths, scrapes = set(), [], []
    with ThreadPoolExecutor(2) as pool:

        def ask():
            codes.update(refused(port, 10_000 + number) for number in range(REFUSED))
            scrapes.append(pool.submit(Metrics, port))
            healths.append(pool.submit(raw, port, HEALTH_CHECK, 60))

        statuses = overload(service, port, "overloaded", ask)
        assert healths[0].result()[0] == 200
        assert scrapes[0].result().sum("cdb_queue_timeouts_total", pool="lookups") >= 2 * REFUSED
    assert codes == {"overloaded"}
    assert set(statuses[:WAITING]) == {200}
    # Both requests of each refusal, and those that ended the wait for the overload.
    metrics, number = Metrics(port), 2 * REFUSED + statuses.count(504)
    assert metrics.sum("cdb_errors_total", code="overloaded") == number
    assert metrics.sum("cdb_queue_timeouts_total", pool="lookups") == number
    assert metrics.sum("cdb_requests_total", status="504") == number
    assert look_up(port, 20_000)[0] == 200
