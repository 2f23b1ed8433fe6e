"""First writes to lists that share rows: processes that are killed, other writers, and a reader beside all of them."""

import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import psutil
import psycopg2
import pytest

from tests.e2e.service import JobClient, Service
from tests.e2e.test_metrics import workers
from tests.e2e.test_processes import wait_until

BASE, CLONE, KINDS = "origin", "sharing", ("Shared_gain", "Shared_noise")
ROWS = 3000
MOMENT = 100
# What a client gets from a server or without a database that was killed.
STOPPED, UNAVAILABLE = (OSError, http.client.HTTPException, ValueError), (503, 504)


@pytest.fixture(scope="module")
def running(new_directory):
    """A service in which a writer waits for a lock as long as a test holds it; afterwards its tables are checked."""
    with Service(new_directory() / "data", CDB_LOCK_TIMEOUT_SECONDS="60", CDB_WORKERS="2").running() as service:
        yield service
        for command in ("check_history", "check_intervals"):
            checked = service.manage(command)
            assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture
def base(running):
    """A base with two lists, and a clone of it that was never written to. Both are deleted at the end."""
    client = JobClient(running.port)
    call = client.call
    for kind in KINDS:
        call("POST", "pt", {"name": kind})
    ok(call("POST", "gt", {"name": BASE, "status": "unlocked"}))
    rows = [row_of(BASE, kind, number, f"{kind}/{number}") for kind in KINDS for number in range(ROWS)]
    ok(call("POST", "payload-iovs/insert", rows))
    ok(call("POST", f"cloneGlobalTag/{BASE}/{CLONE}", None))
    yield client
    for tag in (BASE, CLONE):
        call("DELETE", f"deleteGlobalTag/{tag}", None)


def row_of(tag, kind, since, url):
    return {
        "global_tag": tag, "payload_type": kind, "payload_url": url, "checksum": "c", "since": [since, 0],
        "until": "next",
    }  # fmt: skip


def ok(answer):
    status, document = answer
    assert status == 200, (status, document)
    return document


def write(port, *rows):
    return JobClient(port).call("POST", "payload-iovs/insert", list(rows))


@contextmanager
def database(service):
    with closing(psycopg2.connect(f"postgresql://cdb@/cdb?host={service.data}/postgres/socket")) as connection:
        yield connection


@contextmanager
def stopped_before_recording(service, tag):
    """A write to the tag stops after it has copied the shared rows, until the end of the block. The function that the block gets
    waits for that, and returns its process of the database."""
    with database(service) as holder:
        # Writers take weaker locks, until they raise the revision.
        holder.cursor().execute('SELECT FROM "GlobalTag" WHERE name = %s FOR NO KEY UPDATE', [tag])
        yield lambda: wait_for_lock(service, "raised AS (")


def wait_for_lock(service, statement):
    """The processes of the database that wait for a lock, as soon as one does in this statement."""
    with database(service) as watcher:
        watcher.autocommit = True
        for _ in range(600):
            with watcher.cursor() as cursor:
                cursor.execute(
                    "SELECT pid, query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'cdb'"
                )
                found = dict(cursor.fetchall())
            if any(statement in query for query in found.values()):
                return list(found)
            time.sleep(0.05)
    raise AssertionError("no process waits for a lock")


class Reader:
    """Reads the clone again and again, in several ways, until the end of the block; every answer must be one of the states."""

    def __init__(self, port, states, *, tolerates_stops=False):
        self._port, self._tolerates = port, tolerates_stops
        self._states = [dict(sorted(state.items())) for state in states]
        self.answers, self._over = 0, threading.Event()

    def __enter__(self):
        self._pool = ThreadPoolExecutor(1)
        self._done = self._pool.submit(self._read)
        return self

    def __exit__(self, *_error):
        self._over.set()
        self._pool.shutdown()
        self._done.result()
        assert self.answers > 0

    def _read(self):
        while not self._over.is_set():
            for path, payloads_of in (
                (f"payloadiovs/?gtName={CLONE}&majorIOV={MOMENT}&minorIOV=0&strict=1", self.of_lookup),
                (f"payload-iovs/range?gtName={CLONE}&since={MOMENT},0&until={MOMENT + 1},0", self._of_range),
                (f"globalTag/{CLONE}", self._of_nested),
            ):
                try:
                    status, document = JobClient(self._port).call("GET", path)
                except STOPPED:
                    assert self._tolerates
                    continue
                if status in UNAVAILABLE and self._tolerates:
                    continue
                assert status == 200, (path, status, document)
                found = dict(sorted(payloads_of(document).items()))
                assert found in self._states, (path, found)
                self.answers += 1

    @staticmethod
    def of_lookup(document):
        return {row[0]: row[1] for row in document}

    @staticmethod
    def _of_range(document):
        return {part["payload_type"]: part["payload_url"] for part in document}

    @staticmethod
    def _of_nested(document):
        rows = {one["payload_type"]: one["payload_iov"] for one in document["payload_lists"]}
        assert {len(iovs) for iovs in rows.values()} == {ROWS}, "a part of the rows"
        return {kind: iov["payload_url"] for kind, iovs in rows.items() for iov in iovs if iov["major_iov"] == MOMENT}


BEFORE = {kind: f"{kind}/{MOMENT}" for kind in KINDS}


def after(*rows):
    return BEFORE | {row["payload_type"]: row["payload_url"] for row in rows}


def answer(client, tag=CLONE, more=""):
    path = f"payloadiovs/?gtName={tag}&majorIOV={MOMENT}&minorIOV=0&strict=1{more}"
    return Reader.of_lookup(eventually(client.call, "GET", path))


def shared_lists(service):
    with database(service) as connection, connection.cursor() as cursor:
        cursor.execute(
            'SELECT count(*) FROM "PayloadList" AS list JOIN "GlobalTag" AS tag ON tag.id = list.global_tag_id '
            "WHERE tag.name = %s AND list.base_list_id IS NOT NULL",
            [CLONE],
        )
        return cursor.fetchone()[0]


@pytest.mark.parametrize("victim", ["database", "workers"])
def test_a_first_write_whose_process_is_killed_changes_nothing(running, base, victim):
    row = row_of(CLONE, KINDS[0], MOMENT, "new")
    with Reader(running.port, [BEFORE], tolerates_stops=True), ThreadPoolExecutor(1) as pool:
        with stopped_before_recording(running, CLONE) as wait:
            written = pool.submit(write, running.port, row)
            [pid] = wait()
            if victim == "database":
                psutil.Process(pid).kill()
            for worker in workers(running, "granian") if victim == "workers" else ():
                worker.kill()
        error = written.exception() or written.result()
        assert isinstance(error, STOPPED) or error[0] in UNAVAILABLE, error
        assert answer(base) == BEFORE and shared_lists(running) == len(KINDS)
    eventually(write, running.port, row)
    assert answer(base) == after(row) and shared_lists(running) == len(KINDS) - 1


def eventually(call, *arguments):
    """The document of a call, as soon as it gets one: each connection of a worker fails once after a restart of the database."""
    answers = [(503, None)]

    def is_answered():
        with suppress(*STOPPED):
            answers.append(call(*arguments))
        return answers[-1][0] not in UNAVAILABLE

    wait_until(is_answered)
    return ok(answers[-1])
