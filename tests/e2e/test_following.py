"""One request, followed by its id through the response, nginx's log, the application's log and PostgreSQL's log."""

import http.client
import re
import socket
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.following import Logs, ask, eventually, log_statements
from tests.e2e.service import Service

API = "/api/cdb_rest/"
LOOKUP = f"{API}payloadiovs/?gtName=tiny&majorIOV=%s&minorIOV=0"


@pytest.fixture(scope="module")
def followed(needs_packages, new_directory):
    running = Service(new_directory() / "data", "serve", CDB_LOG_LEVEL="debug").start()
    log_statements(running)
    # The connections that were ended are replaced.
    eventually(lambda: ask(running, "GET", LOOKUP % 5)[0] == 200 and ask(running, "GET", f"{API}gt")[0] == 200)
    yield running
    running.kill_everything()


@pytest.fixture
def logs(followed):
    return Logs(followed)


CASES = [
    ("GET", LOOKUP % 1, 200, "/api/cdb_rest/payloadiovs"),
    ("GET", LOOKUP.replace("tiny", "none") % 1, 404, "/api/cdb_rest/payloadiovs"),
    ("GET", f"{API}globalTags", 200, "/api/cdb_rest/globalTags"),
    ("GET", f"{API}gt", 200, "/api/cdb_rest/gt"),
    ("GET", f"{API}global-tags/tiny/export", 200, "/api/cdb_rest/global-tags/<name>/export"),
    ("POST", f"{API}pt", 200, "/api/cdb_rest/pt"),
    ("PUT", f"{API}pl_attach", 404, "/api/cdb_rest/pl_attach"),
]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("method", "path", "status", "route"), CASES)
def test_a_request_is_followed_by_its_id(followed, logs, method, path, status, route, named):
    body = (
        {"name": f"Type{uuid.uuid4().hex}", "global_tag": "tiny", "payload_list": "none"} if method != "GET" else None
    )
    given = {"X_Request_ID": f"job-{uuid.uuid4()}"} if named else {}
    answered, request_id, _ = ask(followed, method, path, body, **given)
    assert answered == status
    assert request_id == given["X_Request_ID"] if named else re.fullmatch("[0-9a-f]{32}", request_id)

    [entry] = eventually(lambda: logs.nginx(request_id))
    assert (entry["method"], entry["uri"], entry["status"]) == (method, path, status)
    eventually(lambda: len(logs.records(request_id)) >= 2)
    started, finished = logs.records(request_id)
    assert (started["event"], finished["event"]) == ("started", "finished")
    assert (finished["method"], finished["route"], finished["status"]) == (method, route, status)
    assert finished["actor"] == "127.0.0.1"
    # nginx counts the lengths that stand between the pieces of a stream, too.
    assert 0 <= entry["bytes"] - finished["bytes"] < 100
    statements = eventually(lambda: logs.statements(request_id))
    assert all(" cdb " in line for line in statements)
    if "export" in path:
        assert any("COPY" in line for line in statements)
    if path.endswith("/gt"):
        assert any("DECLARE" in line for line in statements)


def test_an_answer_that_still_holds_is_followed_too(followed, logs):
    _, _, headers = ask(followed, "GET", f"{API}globalTags")
    status, request_id, _ = ask(
        followed, "GET", f"{API}globalTags", If_None_Match=headers["ETag"], X_Request_ID="kept-1"
    )
    assert (status, request_id) == (304, "kept-1")
    [_, finished] = eventually(lambda: len(logs.records(request_id)) == 2 and logs.records(request_id))
    assert (finished["route"], finished["status"] in (200, 304)) == ("/api/cdb_rest/globalTags", True)
    assert eventually(lambda: logs.statements(request_id))


def test_an_answer_out_of_the_cache_has_the_id_of_its_own_request(followed, logs):
    ask(followed, "POST", f"{API}gt", {"name": "ice", "status": "frozen"})
    path = f"{API}payloadiovs/?gtName=ice&majorIOV=1&minorIOV=1"
    answers = [ask(followed, "GET", path, X_Request_ID=f"cached-{number}") for number in range(5)]
    assert [request_id for _, request_id, _ in answers] == [f"cached-{number}" for number in range(5)]
    assert answers[-1][2]["CDB-Cache"] == "HIT"
    [entry] = eventually(lambda: logs.nginx("cached-4"))
    assert entry["cache"] == "HIT"
    assert logs.records("cached-4") == []


@pytest.mark.parametrize("bad", ["x" * 65, "*/ DROP TABLE x; --", "a b", "-a", "a/b", "é", "%s"])
def test_an_id_that_is_none_is_replaced_everywhere(followed, logs, bad):
    status, request_id, _ = ask(followed, "GET", LOOKUP % 3, X_Request_ID=bad)
    assert status == 200 and re.fullmatch("[0-9a-f]{32}", request_id)
    assert len(eventually(lambda: logs.nginx(request_id))) == 1
    assert eventually(lambda: logs.statements(request_id))
    assert len(eventually(lambda: logs.records(request_id))) == 2


def test_responses_of_nginx_itself_have_a_request_id(followed, logs):
    status, request_id, _ = ask(followed, "TRACE", "/", X_Request_ID="refused-1")
    assert status == 405 and request_id == "refused-1"
    assert eventually(lambda: logs.nginx("refused-1"))[0]["status"] == 405


def test_requests_at_the_same_time_are_never_mixed_up(followed, logs):
    """Each asks for a moment of its own, which its statement has to name as well."""
    numbers = range(1000, 1300)
    with ThreadPoolExecutor(16) as pool:
        found = list(
            pool.map(lambda number: ask(followed, "GET", LOOKUP % number, X_Request_ID=f"many-{number}"), numbers)
        )
    assert [(status, request_id) for status, request_id, _ in found] == [(200, f"many-{number}") for number in numbers]
    expected = {(f"many-{number}", event): 1 for number in numbers for event in ("started", "finished")}

    def counted():
        ours = [record for record in logs.all_records() if record.get("request_id", "").startswith("many-")]
        return Counter((record["request_id"], record["event"]) for record in ours)

    assert eventually(lambda: len(counted()) >= len(expected))
    assert counted() == expected
    text = (followed.data / "postgres" / "server.log").read_text()
    pairs = re.findall(r"/\*request_id=many-(\d+)\*/[^/]*?'tiny', (\d+), 0", text)
    assert sorted(pairs) == sorted((str(number), str(number)) for number in numbers)


def test_a_client_that_goes_away_leaves_two_records(followed, logs):
    assert followed.manage("seed_scenario", "moderate").returncode == 0
    connection = http.client.HTTPConnection("127.0.0.1", followed.port, timeout=60)
    connection.request("GET", f"{API}global-tags/moderate/export", headers={"X-Request-ID": "leaver-1"})
    assert connection.getresponse().read(100)
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    eventually(lambda: len(logs.records("leaver-1")) == 2)
    assert [record["event"] for record in logs.records("leaver-1")] == ["started", "finished"]


def test_a_command_says_which_one_it_is(followed):
    assert followed.manage("check_intervals").returncode == 0
    assert " cdb-check_intervals LOG: " in (followed.data / "postgres" / "server.log").read_text()


def test_the_file_of_records_can_be_renamed(followed, logs):
    directory = followed.data / "serve"
    (directory / "service.log").rename(directory / "service.log.1")

    def asked_again():
        ask(followed, "GET", LOOKUP % 7, X_Request_ID="renamed-1")
        return logs.records("renamed-1")

    assert eventually(asked_again)
    assert '"renamed-1"' in (directory / "service.log").read_text()
