"""The service behind a real PgBouncer with the configuration of deploy/, where a client uses many connections."""

import contextlib
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest

from cdb import env
from cdb.variables import VARIABLES
from tests.e2e.service import JobClient, free_port
from tests.programs import find, needs

pytestmark = needs("pgbouncer")


@pytest.fixture
def pooler(service, new_directory):
    """The URL of a PgBouncer in front of the embedded server of `service`, with two connections to it."""
    directory, port, sockets = new_directory(), free_port(), service.data / "postgres" / "socket"
    text = (env.ROOT / "deploy" / "pgbouncer" / "pgbouncer.ini").read_text()
    for pattern, value in {
        r"host=db\.example\.org port=5432": f"host={sockets} user=cdb",
        "(?<=listen_port = ).*": str(port),
        "(?<=auth_type = ).*": "trust",
        "(?<=auth_file = ).*": f"{directory}/userlist.txt\nunix_socket_dir =",
        "(?<=default_pool_size = ).*": "2",
    }.items():
        text, found = re.subn(pattern, value, text)
        assert found == 1, pattern
    (directory / "pgbouncer.ini").write_text(text)
    (directory / "userlist.txt").write_text('"cdb" ""\n')
    # Like PostgreSQL it refuses to run as root. PostgreSQL's account may enter the directory of its socket.
    owner, is_root = sockets.stat(), os.geteuid() == 0
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
        yield _when_it_responds(f"postgresql://cdb@127.0.0.1:{port}/cdb")
    finally:
        process.terminate()
        process.wait(10)


def _when_it_responds(url):
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg2.connect(url).close()
            return url
        except psycopg2.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


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
