"""The service and its commands with URLs of a standby, of several servers, and of a server that is no longer the primary."""

from loadtests.service import becomes_true
from tests.e2e.clients import Browser, ask
from tests.e2e.faults import LOOKUP
from tests.e2e.service import JobClient

WITHIN_SECONDS = 30
PASSWORD = "a pass phrase for a test"
STANDBY = "the server is a standby"
READS = (LOOKUP, "globalTags", "gtPayloadLists/tiny", "globalTag/tiny", "gt", "global-tags/tiny/changes?page=1")
NEW = "payloadiovs/?gtName=new&majorIOV=0&minorIOV=0"


def write(service, number):
    """Status and headers of a request that inserts an IOV with the URL `number`."""
    row = {
        "global_tag": "new", "payload_type": "New", "payload_url": str(number), "checksum": "c", "since": [0, number],
    }  # fmt: skip
    return JobClient(service.port).call("POST", "payload-iovs/insert", row | {"until": "open"})


def make_tag(service):
    client = JobClient(service.port)
    assert client.call("POST", "pt", {"name": "New"})[0] == 200
    assert client.call("POST", "gt", {"name": "new", "status": "unlocked"})[0] == 200
    assert write(service, 0)[0] == 200


def assert_unavailable(service):
    """Reads and writes get 504, and the service is not ready."""
    client = JobClient(service.port)
    for path in READS:
        status, error = client.call("GET", path)
        assert (status, error["code"]) == (504, "database_unavailable"), path
    assert_refuses_writes(service)
    assert ask(service, "GET", "/health/ready")[0] == 503


def assert_refuses_writes(service):
    target = "/api/cdb_rest/gt_change_status/tiny/locked"
    for _ in range(3):
        status, headers, error = ask(service, "PUT", target)
        assert (status, error["code"]) == (504, "database_unavailable") and int(headers["Retry-After"]) > 0


def test_a_standby_is_no_database_of_the_service(pair, fresh):
    service = fresh("one", DATABASE_URL=pair.first.url).start()
    make_tag(service)
    pair.second.wait_until_caught_up()
    for arguments in (("run",), ("serve",), ("check_intervals",), ("backup", str(service.data / "dump"))):
        refused = fresh("two", DATABASE_URL=pair.second.url).manage(*arguments)
        assert refused.returncode == 1 and refused.stdout == "", arguments
        [line] = refused.stderr.splitlines()
        assert STANDBY in line and "DATABASE_URL" in line
    pair.switch_over()
    assert_unavailable(service)
    assert any(STANDBY in line for line in service.lines)
    # The server becomes the primary again.
    pair.second.kill()
    (pair.first.data / "standby.signal").unlink()
    pair.first.stop()
    pair.first.start()
    assert becomes_true(lambda: write(service, 1)[0] == 200, WITHIN_SECONDS)
    assert all(ask(service, "GET", f"/api/cdb_rest/{path}")[0] == 200 for path in READS)


def test_sessions_on_a_server_that_became_read_only_neither_fail_nor_read_old_data(pair, fresh):
    single = fresh("single", DATABASE_URL=pair.first.url).start()
    several = fresh("several", DATABASE_URL=pair.url, CDB_WORKERS="2").start()
    make_tag(single)
    single.environment |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    assert (
        single.manage("createsuperuser", "--no-input", "--username", "operator", "--email", "o@example.org").returncode
        == 0
    )
    for service in (single, several):
        # Each thread has a session.
        assert all(JobClient(service.port).get(path) for path in (*READS, NEW) * 20)
    pair.second.wait_until_caught_up()
    pair.make_first_read_only()
    assert_refuses_writes(single)
    status, headers, _ = Browser(single.port).log_in(PASSWORD)
    assert (status, headers["Retry-After"]) == (504, "5")
    assert all(JobClient(single.port).get(path) for path in READS)
    pair.second.promote()
    # Another host writes to the new primary.
    other = fresh("other", DATABASE_URL=pair.second.url).start()
    assert write(other, 1)[0] == 200
    expected = JobClient(other.port).get(NEW.replace("minorIOV=0", "minorIOV=1"))
    for _ in range(40):
        status, found = JobClient(several.port).call("GET", NEW.replace("minorIOV=0", "minorIOV=1"))
        assert status == 504 or found == expected
        assert JobClient(several.port).call("GET", "gt")[0] in (200, 504)
    assert JobClient(several.port).get("globalTag/new?light")["payload_iov_count"] == 2
    assert write(several, 2)[0] == 200
