"""The cache of lookups: what it saves, and that the answer comes whatever happens to it."""

import contextlib
import json
import multiprocessing
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from cdb_client import Client, NotFoundError
from clients.python.tests.test_resolving import insert, lookup, resolved

ROWS = [(f"Type{number}", f"{number}/{run}", [run, 0], "next") for number in range(20) for run in range(0, 50, 5)]
# Prints what a process finds, and the number of its requests.
SCRIPT = """
import json, sys
from cdb_client import Client
client = Client(sys.argv[1])
rows = [iov.row for iov in client.tag(sys.argv[2]).resolve(int(sys.argv[3])).values()]
print(json.dumps([rows, client.transport.requests]))
"""


@pytest.fixture
def job(server):
    """Starts a process that resolves a moment. It begins with the words of `before`."""

    def start(name, moment, before=()):
        command = [*before, sys.executable, "-c", SCRIPT, server, name, str(moment)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


def ended(process):
    """What a process has printed: rows, the number of requests, and the lines of its errors."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return *json.loads(out), err.splitlines()


def stored(tmp_path):
    return tmp_path / "cache" / "lookups.sqlite3"


def test_what_is_known_is_not_asked_again(api, server):
    unlocked, frozen = api.make_tag(ROWS), api.make_tag(ROWS, "frozen")
    for client, requests in ((Client(server), None), (Client(server), 0)):
        for tag in (client.tag(frozen), client.tag(unlocked).rev(2)):
            for moment in (7, 12, 3):
                assert [row[4] for row in resolved(tag, moment, strict=True)] == [moment // 5 * 5] * 20
        if requests is not None:
            assert client.transport.requests == requests
    for requests in (3, 0):
        client = Client(server)
        client.tag(frozen).prefetch(1, 40)
        assert len(client.tag(frozen).resolve(39)) == 20
        assert client.transport.requests <= requests
    Client(server).tag(unlocked).prefetch()
    for options, requests in (({}, 1), ({"max_age": 1000}, 0), ({"fresh": True}, 12)):
        client = Client(server, **options)
        for moment in (7, 13, 7, 48) * 3:
            assert len(client.tag(unlocked).resolve(moment)) == 20
        assert client.transport.requests == requests, options


def test_a_change_is_seen(api, server):
    name = api.make_tag(ROWS)
    first, fresh = Client(server), Client(server, fresh=True)
    for number in range(3):
        insert(api, name, "Type3", [7, number], "next")
        assert resolved(fresh.tag(name), (8, 0)) == lookup(api, [name], (8, 0))
        assert resolved(Client(server).tag(name), (8, 0)) == lookup(api, [name], (8, 0))
        # It was asked once.
        assert first.tag(name).resolve(8).revisions == (3,)
    api("DELETE", f"deleteGlobalTag/{name}")
    with pytest.raises(NotFoundError):
        Client(server).tag(name).resolve(8)
    assert resolved(Client(server).tag(name).rev(3), (8, 0))


def test_processes_share_the_cache(api, job):
    name = api.make_tag(ROWS)
    results = [ended(process) for process in [job(name, 7) for _ in range(15)]]
    assert all(rows == lookup(api, [name], (7, 0)) and not errors for rows, _, errors in results)
    # One process asks for the mode and for the rows. The others ask whether they have changed.
    assert sorted(requests for _, requests, _ in results) == [1] * 14 + [2]
    moments = range(0, 50, 6)
    results = [ended(process) for process in [job(name, moment) for moment in moments]]
    for moment, (rows, _, errors) in zip(moments, results, strict=True):
        assert [row[4] for row in rows] == [moment // 5 * 5] * 20 and not errors


def test_threads_and_forks(api, server):
    client, name = Client(server), api.make_tag(ROWS)

    def ask(first):
        for moment in range(first, 50, 8):
            assert {row[4] for row in resolved(client.tag(name), (moment, 0))} == {moment // 5 * 5}

    with ThreadPoolExecutor() as threads:
        list(threads.map(ask, range(4)))
    # Child processes neither use the connections of their parent nor disturb them.
    children = [multiprocessing.get_context("fork").Process(target=ask, args=[first]) for first in range(4, 7)]
    for child in children:
        child.start()
    ask(7)
    for child in children:
        child.join()
        assert child.exitcode == 0


def garbage(path):
    path.write_bytes(b"no database" * 1000)


def wrong_bytes(path):
    content = bytearray(path.read_bytes())
    for place in range(100, len(content), 50):
        content[place] ^= 0x55
    path.write_bytes(content)


def wrong_rows(path):
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE stretch SET since = '', until = '9' || rowid")


def other_columns(path):
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE stretch")
        file.execute("CREATE TABLE stretch (name TEXT)")


@pytest.mark.parametrize("damage", [garbage, wrong_bytes, wrong_rows, other_columns])
def test_a_damaged_file_is_made_anew(api, job, tmp_path, damage):
    name = api.make_tag(ROWS, "frozen")
    for moment in (7, 22):
        ended(job(name, moment))
    damage(stored(tmp_path))
    for moment, last in ((7, 2), (22, 2), (7, 2), (22, 0), (7, 0)):
        rows, requests, errors = ended(job(name, moment))
        assert rows == lookup(api, [name], (moment, 0))
        assert len(errors) <= 1 and requests <= last


def test_the_command_announces_a_damaged_file(api, cdb, tmp_path):
    name = api.make_tag(ROWS)
    for lines in (0, 1):
        done = cdb("resolve", name, 7)
        assert done.code == 0 and done.err.count("cdb: The cache") == done.err.count("\n") == lines
        garbage(stored(tmp_path))


NAMESPACE = ("unshare", "--map-root-user", "--mount", "sh", "-c")
SMALL = 'mount -t tmpfs -o size=16k tmpfs "$CDB_CACHE_DIR" && exec "$0" "$@"'
READ_ONLY = (
    'mount --bind "$CDB_CACHE_DIR" "$CDB_CACHE_DIR" && mount -o remount,ro,bind "$CDB_CACHE_DIR" && exec "$0" "$@"'
)


@pytest.mark.parametrize("mount", [SMALL, READ_ONLY], ids=["full", "read-only"])
def test_a_cache_that_cannot_be_written(api, job, tmp_path, mount):
    stored(tmp_path).parent.mkdir()
    if subprocess.run([*NAMESPACE, mount, "true"], check=False).returncode:
        pytest.skip("this machine does not permit mounts in a namespace")
    name, frozen = api.make_tag(ROWS), api.make_tag(ROWS, "frozen")
    rows, requests, errors = ended(job(name, 7, [*NAMESPACE, mount]))
    assert rows == lookup(api, [name], (7, 0)) and requests == 2
    assert len(errors) == 1 and "works without it" in errors[0]
    # What is there is read.
    ended(job(frozen, 7))
    rows, requests, errors = ended(job(frozen, 7, [*NAMESPACE, mount]))
    assert rows == lookup(api, [frozen], (7, 0))
    assert (requests, errors) == (0, []) if mount is READ_ONLY else requests == 2


def test_no_cache(api, server, tmp_path, capfd):
    name = api.make_tag(ROWS)
    # A directory that cannot be made, and none.
    for cache in ("/dev/null/cache", False):
        client = Client(server, cache=cache)
        for moment in (7, 12, 33):
            assert resolved(client.tag(name), (moment, 0)) == lookup(api, [name], (moment, 0))
    assert not (tmp_path / "cache").exists()


def test_a_file_that_another_process_holds(api, server, tmp_path, monkeypatch):
    monkeypatch.setattr("cdb_client.cache.BUSY_SECONDS", 0.1)
    name = api.make_tag(ROWS)
    Client(server).tag(name).resolve(7)
    with contextlib.closing(sqlite3.connect(stored(tmp_path), isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        for moment in (7, 12):
            assert resolved(Client(server).tag(name), (moment, 0)) == lookup(api, [name], (moment, 0))
