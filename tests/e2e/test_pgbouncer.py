"""The service behind a real PgBouncer with the configuration of deploy/, where a client uses many connections."""

import contextlib
import itertools
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from cdb import env
from cdb.variables import VARIABLES
from loadtests.harness import Database
from loadtests.service import becomes_true
from tests.e2e.clients import ask
from tests.e2e.faults import LOOKUP
from tests.e2e.service import JobClient, free_port
from tests.programs import find, needs
from tests.waiting import is_open, wait_until

pytestmark = needs("pgbouncer")


@contextlib.contextmanager
def pgbouncer(directory, sockets, connections=2):
    """Inside the block, a PgBouncer in front of servers with these sockets, which has so many connections to each; its URL."""
    port, hosts = free_port(), ",".join(map(str, sockets))
    text = (env.ROOT / "deploy" / "pgbouncer" / "pgbouncer.ini").read_text()
    for pattern, value in {
        r"host=db\.example\.org port=5432": f"host={hosts} user=cdb",
        "(?<=listen_port = ).*": str(port),
        "(?<=auth_type = ).*": "trust",
        "(?<=auth_file = ).*": f"{directory}/userlist.txt\nunix_socket_dir =",
        "(?<=default_pool_size = ).*": str(connections),
    }.items():
        text, found = re.subn(pattern, value, text)
        assert found == 1, pattern
    (directory / "pgbouncer.ini").write_text(text)
    (directory / "userlist.txt").write_text('"cdb" ""\n')
    # Like PostgreSQL it refuses to run as root. PostgreSQL's account may enter the directory of its socket.
    owner, is_root = sockets[0].stat(), os.geteuid() == 0
    directory.chmod(0o755)
    process = subprocess.Popen(
        [find("pgbouncer"), directory / "pgbouncer.ini"],
        user=owner.st_uid if is_root else None,
        group=owner.st_gid if is_root else None,
        extra_groups=[] if is_root else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: is_open(port))
        yield f"postgresql://cdb@127.0.0.1:{port}/cdb"
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def pooler(service, new_directory):
    """The URL of a PgBouncer in front of the embedded server of `service`, with two connections to it."""
    with pgbouncer(new_directory(), [service.data / "postgres" / "socket"]) as url:
        yield url


@pytest.fixture
def pooled(pooler, fresh):
    return fresh("pooled", DATABASE_URL=pooler, SCENARIO="none").start()


def test_lookups_writes_and_streams_share_two_connections(pooled, service):
    client = JobClient(pooled.port)
    client.call("POST", "pt", {"name": "Pooled"})

    def work(number):
        tag = f"pooled{number}"
        assert client.call("POST", "gt", {"name": tag, "status": "unlocked"})[0] == 200
        name = client.call("POST", "pl", {"payload_type": "Pooled"})[1]["name"]
        assert client.call("PUT", "pl_attach", {"global_tag": tag, "payload_list": name})[0] == 200
        rows = [
            {"payload_url": f"{tag}/{major}", "payload_list": name, "major_iov": major, "minor_iov": 0}
            for major in range(50)
        ]
        assert client.call("POST", "bulk_piov", rows)[0] == 200
        for major in range(50):
            assert client.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=7")[0][1] == f"{tag}/{major}"
        assert len(client.get(f"globalTag/{tag}")["payload_lists"][0]["payload_iov"]) == 50
        assert client.call("POST", f"cloneGlobalTag/{tag}/{tag}copy", None)[1]["payload_iov_count"] == 50
        assert client.call("DELETE", f"deleteGlobalTag/{tag}")[0] == 200

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(work, range(12)))
    assert service.manage("check_intervals").returncode == 0


def test_statements_have_the_time_limits_that_the_service_asks_for(pooler):
    timeouts = {variable.name: variable.default for variable in VARIABLES}
    with contextlib.closing(psycopg2.connect(pooler)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
        assert cursor.fetchone() == tuple(f"{timeouts[f'CDB_{name}_TIMEOUT_SECONDS']}s" for name in ("LOOKUP", "LOCK"))


def test_sessions_of_the_service_never_read_from_a_former_primary(pair, new_directory, fresh):
    """One PgBouncer connects to the former primary again; the other one knows two hosts, and finds which is the primary."""
    with contextlib.ExitStack() as running:
        urls = [running.enter_context(pgbouncer(new_directory(), pair.sockets[:number])) for number in (1, 2)]
        stuck, following = services = [
            fresh(f"pooled{n}", DATABASE_URL=url, CDB_WORKERS="2").start() for n, url in enumerate(urls)
        ]
        clients = [JobClient(service.port) for service in services]
        assert clients[0].call("POST", "gt", {"name": "before", "status": "unlocked"})[0] == 200
        # Each thread has a session.
        assert all(client.get(path) for client in clients for path in ("globalTags", "gt", LOOKUP) * 20)
        pair.second.wait_until_caught_up()
        pair.switch_over()
        # It falls behind.
        Database(pair.first.url).run("SELECT pg_wal_replay_pause()")
        other = fresh("other", DATABASE_URL=pair.second.url).start()
        assert JobClient(other.port).call("POST", "gt", {"name": "after", "status": "unlocked"})[0] == 200
        for number, client in itertools.product(range(20), clients):
            for path in ("globalTags", "global-tags?page=1", "globalTag/after?light"):
                status, found = client.call("GET", path)
                assert (status == 504 and found["code"] == "database_unavailable") or "after" in str(found), found
            tag = {"name": f"again{client.port}x{number}", "status": "unlocked"}
            assert client.call("POST", "gt", tag)[0] in (200, 504)
        assert clients[0].call("GET", "globalTags")[0] == 504
        assert ask(stuck, "GET", "/health/ready")[0] == 503
        for method, path in (("GET", "globalTags"), ("PUT", "gt_change_status/after/locked")):
            assert becomes_true(lambda request=(method, path): clients[1].call(*request)[0] == 200, 30)
        assert ask(following, "GET", "/health/ready")[0] == 200
