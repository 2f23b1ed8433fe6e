"""nginx's cache in front of the real service: what it stores, what it revalidates, and its behaviour while parts are down."""

import contextlib
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.clients import PREFIX, ask
from tests.e2e.service import JobClient, Service
from tests.e2e.test_metrics import eventually

UNLOCKED = f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


def freeze_copy(service):
    """A lookup in a frozen copy of `tiny`."""
    client = JobClient(service.port)
    status, tag = client.call("POST", f"cloneGlobalTag/tiny/frozen{time.monotonic_ns()}", None)
    assert status == 200
    assert client.call("PUT", f"gt_change_status/{tag['name']}/frozen", None)[0] == 200
    return f"{PREFIX}payloadiovs/?gtName={tag['name']}&majorIOV=5&minorIOV=0"


@contextlib.contextmanager
def supervision_paused(service):
    """Inside the block, programs that end are not restarted."""
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="module")
def own(needs_packages, new_directory):
    """A service for the tests that kill parts of one. nginx waits for its responses for no longer than these times and some
    seconds."""
    settings = {"CDB_QUEUE_TIMEOUT_SECONDS": "2", "CDB_LOOKUP_TIMEOUT_SECONDS": "2"}
    with Service(new_directory() / "data", "serve", **settings).running() as service:
        yield service


def test_a_frozen_answer_is_kept_and_an_unlocked_one_is_asked_for_each_time(served):
    frozen = freeze_copy(served)
    # What is asked for only once is not kept.
    assert [ask(served, "GET", frozen)[1]["CDB-Cache"] for _ in range(4)] == ["MISS", "MISS", "HIT", "HIT"]
    found = [ask(served, "GET", f"{UNLOCKED}&strict=1")[1]["CDB-Cache"] for _ in range(4)]
    assert found == ["MISS", "MISS", "REVALIDATED", "REVALIDATED"]


@pytest.mark.parametrize(
    "path",
    [
        "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0",
        "gtPayloadLists/tiny?",
        "globalTag/tiny?light",
        "globalTag/tiny?shape=whole",
    ],
)
def test_a_revision_of_an_unlocked_tag_is_kept(served, path):
    target = f"{PREFIX}{path}&new={time.monotonic_ns()}"
    _, headers, now = ask(served, "GET", target)
    revision = headers["CDB-Revision"]
    # As in the other tests, what is asked for only once is not kept.
    found = [ask(served, "GET", f"{target}&rev={revision}") for _ in range(4)]
    assert [headers["CDB-Cache"] for _, headers, _ in found] == ["MISS", "MISS", "HIT", "HIT"]
    assert all((status, body) == (200, now) and headers["CDB-Revision"] == revision for status, headers, body in found)
    at = [ask(served, "GET", f"{target}&at=2999-01-01") for _ in range(3)]
    assert {(status, headers["Cache-Control"]) for status, headers, _ in at} == {(404, "no-store")}
    moment = ask(served, "GET", f"{PREFIX}global-tags/tiny/changes/{revision}")[2]["time"]
    at = [ask(served, "GET", f"{target}&at={moment}") for _ in range(4)]
    assert [headers["CDB-Cache"] for _, headers, _ in at] == ["MISS", "MISS", "REVALIDATED", "REVALIDATED"]
    assert all(body == now for _, _, body in at)


def test_the_answers_are_those_of_the_service_and_a_client_that_has_one_gets_304(served, service):
    direct = ask(service, "GET", UNLOCKED)[2]
    status, headers, rows = ask(served, "GET", UNLOCKED)
    assert (status, rows) == (200, direct)
    assert headers["Cache-Control"] == "public, no-cache" and "X-Accel-Expires" not in headers
    assert ask(served, "GET", UNLOCKED, **{"If-None-Match": headers["ETag"]})[0] == 304
    assert ask(served, "GET", UNLOCKED, **{"If-None-Match": '"other"'})[0] == 200
    assert ask(served, "HEAD", UNLOCKED)[1]["Content-Length"] == headers["Content-Length"]


def test_of_many_that_ask_for_the_same_at_once_one_goes_to_the_service(served):
    frozen = freeze_copy(served)
    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda _: ask(served, "GET", frozen), range(60)))
    assert {status for status, _, _ in found} == {200}
    states = [headers["CDB-Cache"] for _, headers, _ in found]
    # One more may have lost its patience with the first on a busy machine.
    assert states.count("MISS") <= 30 and states.count("HIT") >= 30


def test_without_granian_frozen_answers_go_on_and_others_are_504(own):
    frozen = freeze_copy(own)
    for target in (frozen, UNLOCKED) * 2:
        assert ask(own, "GET", target)[0] == 200
    answer = ask(own, "GET", frozen)[2]
    with supervision_paused(own):
        for process in own.programs("granian"):
            process.kill()
        for _ in range(20):
            status, headers, rows = ask(own, "GET", frozen)
            assert (status, headers["CDB-Cache"], rows) == (200, "HIT", answer)
        status, headers, error = ask(own, "GET", UNLOCKED)
        assert (status, error["code"], headers["Retry-After"]) == (504, "service_unavailable", "5")
        assert headers["Cache-Control"] == "no-store" and headers["Content-Type"] == "application/json"
    eventually(lambda: ask(own, "GET", UNLOCKED)[0], 200)
