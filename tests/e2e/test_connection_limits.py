"""A database with fewer connections than threads: a warning at the start, and the service works."""

import json
import os
import subprocess
import sys
import time

import psutil
import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from cdb.processes import directories
from tests.e2e.pooler import pooler
from tests.e2e.service import JobClient, free_port
from tests.programs import needs

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


@pytest.fixture(scope="module")
def small(new_directory):
    """A server that takes ten connections, three of which are for administrators."""
    server = EmbeddedPostgres(new_directory() / "small", {"max_connections": "10"})
    server.acquire()
    yield server
    server.release()


def warnings(service):
    return [line for line in service.lines if "Warning:" in line]


@pytest.mark.parametrize("threads", [3, 4])
def test_run_says_so(fresh, small, threads):
    service = fresh(f"run{threads}", DATABASE_URL=small.url, CDB_WORKERS="2", CDB_THREADS=str(threads)).start()
    assert len(JobClient(service.port).get(LOOKUP)) == 10
    expected = [
        "cdb: Warning: gunicorn's 2 processes x 4 threads may open 8 connections, but DATABASE_URL allows 7 (max_connections 10, "
        "less 3 reserved); under load, requests will wait for a connection and get 504. Lower CDB_WORKERS or CDB_THREADS, or "
        "raise max_connections by 1 or more."
    ]
    assert warnings(service) == (expected if threads == 4 else [])
    service.stop()


def test_serve_says_so_once_for_all_pools(needs_packages, fresh, small):
    service = fresh("serve", "serve", DATABASE_URL=small.url, CDB_WORKERS="2", CDB_THREADS="2").start()
    [line] = warnings(service)
    said = "Warning: during a deployment, the pools (lookups 8, others 4) may open 12 connections, but DATABASE_URL allows 7 "
    assert line.startswith(said)
    assert len(JobClient(service.port).get(LOOKUP)) == 10
    service.stop()


@pytest.fixture
def gunicorn(small, new_directory):
    """gunicorn started without `make run`; its output until it has listened for two seconds."""
    started = []

    def start(url, **settings):
        environment = {
            "PATH": os.defpath,
            "CDB_ENV_FILE": os.devnull,
            "CDB_DATA_DIR": str(new_directory()),
            "PORT": str(free_port()),
            "DATABASE_URL": url,
            "CDB_WORKERS": "2",
            "CDB_THREADS": "4",
            **settings,
        }
        command = [sys.executable, "-m", "gunicorn", "--config", "deploy/gunicorn.conf.py"]
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True))
        client = JobClient(int(environment["PORT"]))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                status, _ = client.call("GET", "globalTags")
                break
            except OSError:
                time.sleep(0.1)
        started[-1].terminate()
        _, said = started[-1].communicate(timeout=60)
        return status, [line for line in said.splitlines() if "Warning:" in line]

    yield start
    for process in started:
        process.kill()


def test_limits_of_a_role_and_of_a_database_count_too(gunicorn, small, service):
    url = EmbeddedPostgres(service.data / "postgres").url
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER DATABASE cdb CONNECTION LIMIT 6")
    try:
        status, [line] = gunicorn(url)
        assert status == 200 and "allows 6 (CONNECTION LIMIT of the database)" in line
    finally:
        with psycopg2.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("ALTER DATABASE cdb CONNECTION LIMIT -1")
    assert gunicorn(url) == (200, [])


def test_a_replica_counts_by_itself(gunicorn, service, small):
    url = EmbeddedPostgres(service.data / "postgres").url
    _, lines = gunicorn(url, DATABASE_REPLICA_URLS=small.url)
    assert len(lines) == 1 and "replica 1 of DATABASE_REPLICA_URLS allows 7 " in lines[0]


@pytest.mark.parametrize("admin", ["cdb", "other"])
@needs("pgbouncer")
def test_behind_a_pool_its_size_counts_if_it_tells(gunicorn, service, new_directory, admin):
    settings = f"admin_users = {admin}\nignore_startup_parameters = extra_float_digits,options"
    with pooler(service, new_directory(), of_database="pool_size=5", settings=settings) as url:
        status, lines = gunicorn(url)
    assert status == 200
    assert [line for line in lines if "allows 5 (PgBouncer's pool_size 5)" not in line] == []
    assert len(lines) == (1 if admin == "cdb" else 0)


def test_a_database_that_is_away_says_so_by_itself(gunicorn):
    status, lines = gunicorn("postgresql://cdb@127.0.0.1:1/cdb")
    assert status == 504 and lines == []


def test_serve_starts_the_processes_that_capacity_prints(served):
    """Processes, threads and connections as they really are."""
    document = json.loads(served.manage("capacity", "--json").stdout)
    said, name = {}, ""
    for hop in document["hops"]:
        name = hop["name"] or name
        said[name, hop["what"]] = hop["count"]
    commands = {process.pid: text for process, text in served.ask_each(lambda one: " ".join(one.cmdline())).items()}
    masters = {
        name: [pid for pid, command in commands.items() if f"gunicorn_master {name}" in command]
        for name in ("lookups", "others")
    }
    for name, pids in masters.items():
        [master] = [pid for pid in pids if psutil.Process(pid).ppid() not in pids]
        assert len(psutil.Process(master).children()) == said[f"gunicorn ({name})", "processes"]
    workers = [command for command in commands.values() if command.startswith("nginx: worker")]
    assert len(workers) == said["clients -> nginx", "processes"]
    sockets = directories.for_sockets(served.data.resolve() / "serve" / "sockets", "[^A-Za-z0-9/._-]")
    console = psycopg2.connect(dbname="pgbouncer", host=str(sockets / "pool"), port=6432, user="cdb")
    console.autocommit = True
    with console.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        columns = [column.name for column in cursor.description]
        rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    console.close()
    sizes = {row["name"]: row["pool_size"] for row in rows if row["name"] != "pgbouncer"}
    assert sizes == {f"cdb_{pool}": said[f"gunicorn ({pool})", "threads in all"] for pool in ("lookups", "others")}
    assert sizes["cdb_others"] == said["PgBouncer -> PostgreSQL (cdb_others)", "connections"]
    assert said["gunicorn (lookups) -> PostgreSQL", "connections"] == said["gunicorn (lookups)", "threads in all"]
    connection = psycopg2.connect(EmbeddedPostgres(served.data / "postgres").url)
    with connection.cursor() as cursor:
        for name, value in document["postgresql"].items():
            cursor.execute(f"SHOW {name}")
            shown = cursor.fetchone()[0]
            assert shown == value or _kilobytes(shown) == _kilobytes(value), name
    connection.close()


def _kilobytes(size):
    return int(size[:-2]) * {"kB": 1, "MB": 1024, "GB": 1024**2}[size[-2:]]
