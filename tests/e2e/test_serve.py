"""`make serve`: starting, stopping, being killed, and several at the same time."""

import contextlib
import http.client
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time

import psutil
import psycopg2
import pytest

from cdb.embedded import binaries
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from tests.e2e.service import JobClient, Service

pytestmark = pytest.mark.usefixtures("needs_packages")


def test_it_starts_with_the_same_lines_as_make_run(served, service):
    assert [line.split()[0] for line in served.start_lines] == [line.split()[0] for line in service.start_lines]
    names = {name.split(":")[0] for name in served.ask_each(psutil.Process.name).values()}
    assert {"nginx", "postgres"} <= names


def test_two_do_not_run_on_one_directory(fresh, served):
    again = fresh("again")
    again.environment["CDB_DATA_DIR"] = str(served.data)
    refused = again.manage("serve")
    assert refused.returncode == 1
    [line] = refused.stderr.splitlines()
    assert line.startswith("cdb: make serve uses ")
    assert JobClient(served.port).get("globalTags")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run a program as another user")
def test_an_ordinary_user_can_do_it(new_directory):
    binaries.allow_traversal(ROOT / "any")
    account = pwd.getpwnam("games")
    home = new_directory()
    # Copied, because the way to the project may be closed to others.
    project = home / "project"
    ignored = shutil.ignore_patterns(".git", ".venv", ".tools", "var", "tests", "loadtests", "docs")
    shutil.copytree(ROOT, project, ignore=ignored)
    project.chmod(0o755)
    home.chmod(0o755)
    os.chown(home, account.pw_uid, account.pw_gid)
    settings = {"SCENARIO": "none", "HOME": str(home), "PYTHONPATH": sysconfig.get_path("purelib")}
    service = Service(home / "data", "serve", root=project, is_first_start=True, **settings)
    service.account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    # Our own interpreter may be out of reach of other accounts.
    for service.python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            probe = [service.python, "-c", "import django, psycopg2"]
            if not subprocess.run(probe, cwd="/", env=service.environment, **service.account).returncode:
                break
    else:
        pytest.skip("other users cannot read the installed packages")
    with service.running():
        assert JobClient(service.port).get("globalTags") == []
        assert JobClient(service.port).call("POST", "gt", {"name": "x", "status": "unlocked"})[0] == 200


def test_requests_in_progress_may_end(fresh):
    service = fresh(command="serve", SCENARIO="moderate").start()
    # A reader that takes its time holds the answer, and nginx, back.
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"GET /api/cdb_rest/gt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        response = http.client.HTTPResponse(connection)
        response.begin()
        service.process.terminate()
        time.sleep(1)
        assert response.read().count(b'"payload_url"') == 20_000
    assert service.process.wait(60) == 0
    assert service.family() == []


def test_a_database_elsewhere_is_served(fresh, new_directory):
    server = EmbeddedPostgres(new_directory() / "elsewhere")
    server.acquire()
    with contextlib.closing(psycopg2.connect(server.url)) as connection, connection.cursor() as cursor:
        cursor.execute("""CREATE ROLE "o'r" LOGIN SUPERUSER PASSWORD 'p''w d'""")
        connection.commit()
    (server.data / "pg_hba.conf").write_text("local all cdb trust\nlocal all all scram-sha-256\n")
    psutil.Process(int((server.data / "postmaster.pid").read_text().split()[0])).send_signal(signal.SIGHUP)
    service = fresh(command="serve", DATABASE_URL=server.url.replace("cdb@", "o%27r:p%27w%20d@")).start()
    assert len(JobClient(service.port).get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10
    for name in ("nginx.conf", "supervisord.conf"):
        assert "p'w" not in (service.data / "serve" / name).read_text()
    assert service.stop() == 0
    server.release()
