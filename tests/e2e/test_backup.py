"""Backups of a running service, and the state of the service after they are restored."""

import contextlib
import re
import subprocess
import sys
import time
from email.utils import parsedate_to_datetime

import psycopg2
import pytest

from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from tests.e2e.clock import now
from tests.e2e.counting import eventually
from tests.e2e.service import JobClient, raw

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=900&minorIOV=0"


class Backed:
    """A service with a directory for backups, and writes that it has acknowledged."""

    def __init__(self, service, directory):
        self.service = service
        self.directory = directory

    @property
    def client(self):
        return JobClient(self.service.port)

    def write(self, *urls, tag="tiny"):
        for url in urls:
            row = {"global_tag": tag, "payload_type": f"Type{url}", "payload_url": url, "checksum": "c"}
            self.client.call("POST", "pt", {"name": f"Type{url}"})
            status, answer = self.client.call("POST", "payload-iovs/insert", row | {"since": [0, 0], "until": "open"})
            assert status in (200, 201), answer

    def written(self, *urls):
        """Which of these writes are there."""
        found = {row[1] for row in self.client.get(LOOKUP)}
        return "".join(url for url in urls if url in found)

    def revision(self):
        return self.changes()[0]["revision"]

    def changes(self):
        """The change log of the tag, the newest change first."""
        return self.client.get("global-tags/tiny/changes")["results"]

    def backup(self, *options):
        done = self.service.manage("backup", str(self.directory), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def restore(self, *options):
        done = self.service.manage("restore", str(self.directory), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, command, *options):
        """The line that a command fails with. The data remain."""
        done = self.service.manage(command, str(self.directory), *options)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (done.stdout, done.stderr)
        return done.stderr


@pytest.fixture
def backed(fresh, new_directory):
    return Backed(fresh(CDB_WORKERS="1").start(), new_directory() / "backups")


def validators(backed):
    """The validators that a cache gets with a lookup, as soon as it gets all of them."""
    while True:
        status, headers, _ = raw(
            backed.service.port, f"GET /api/cdb_rest/{LOOKUP} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()
        )
        assert status == 200
        if "last-modified" in headers:
            return headers["etag"], headers["last-modified"]
        time.sleep(0.1)


def conditional(backed, header, value):
    request = f"GET /api/cdb_rest/{LOOKUP} HTTP/1.0\r\nHost: localhost\r\n{header}: {value}\r\n\r\n"
    return raw(backed.service.port, request.encode())[0]


def test_the_state_after_restoring_to_a_time_and_its_validators_and_revisions(backed):
    backed.write("A")
    backed.backup()
    backed.write("B")
    kept = validators(backed)
    until = now().isoformat()
    backed.write("C")
    # Of a cache, and of a job that wrote its revision down.
    lost, lost_revision = validators(backed), backed.revision()
    assert lost != kept
    assert backed.client.call("PUT", "gt_change_status/tiny/frozen")[0] == 200
    backed.service.stop()

    printed = backed.restore("--until", until).splitlines()
    assert "Revisions continue from" in printed[0] and printed[1].endswith(": tiny")
    backed.service.start()
    assert backed.written("A", "B", "C") == "AB"
    assert backed.revision() > lost_revision
    backed.write("D")
    etag, modified = validators(backed)
    assert etag not in (*kept, *lost) and parsedate_to_datetime(modified) > parsedate_to_datetime(lost[1])
    for old in (kept, lost):
        assert conditional(backed, "If-None-Match", old[0]) == conditional(backed, "If-Modified-Since", old[1]) == 200
    assert conditional(backed, "If-None-Match", etag) == conditional(backed, "If-Modified-Since", modified) == 304
    assert [change["action"] for change in backed.changes()][:2] == ["insert", "restore"]

    # Caches may keep responses for the frozen tag that was lost, so other content can be frozen under another name only.
    status, answer = backed.client.call("PUT", "gt_change_status/tiny/frozen")
    assert (status, answer["code"]) == (409, "name_retired")
    assert backed.client.call("POST", "cloneGlobalTag/tiny/other")[0] in (200, 201)
    assert backed.client.call("PUT", "gt_change_status/other/frozen")[0] == 200

    # What follows a restoration is archived on a timeline of its own: both ends can be restored.
    backed.service.stop()
    backed.restore()
    backed.service.start()
    assert backed.written("A", "B", "C", "D") == "ABD"
    assert backed.client.call("PUT", "gt_change_status/tiny/frozen")[1]["code"] == "name_retired"
    backed.service.stop()
    assert "not frozen now" in backed.restore("--timeline", "1", "--until", until)
    backed.service.start()
    assert backed.written("A", "B", "C", "D") == "AB"


def test_metrics_show_that_wal_is_not_archived(backed):
    server = EmbeddedPostgres(backed.service.data / "postgres")

    def archive():
        """Let the server archive its present WAL file."""
        with contextlib.closing(psycopg2.connect(server.url)) as connection:
            connection.autocommit = True
            connection.cursor().execute("SELECT pg_logical_emit_message(true, 'test', ''), pg_switch_wal()")

    def archiving_fails():
        _, _, text = raw(backed.service.port, b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return re.search(rb"^cdb_database_archiving_fails (.*)$", text, re.MULTILINE)[1]

    backed.backup()
    assert archiving_fails() == b"0.0"
    away = backed.directory.rename(backed.directory.with_name("away"))
    archive()
    eventually(archiving_fails, b"1.0")
    away.rename(backed.directory)
    archive()
    eventually(archiving_fails, b"0.0")


def test_each_error_of_backup_and_restore_is_one_line(backed, fresh, new_directory):
    assert "there is no backup in" in backed.refused("backup", "--incremental")
    backed.backup()
    assert "in use; stop the service first" in backed.refused("restore")
    assert "--until must be a time" in backed.refused("restore", "--until", "yesterday")
    other = Backed(fresh("other", is_first_start=True).start(), backed.directory)
    assert "has backups of another server" in other.refused("backup")
    occupied = Backed(backed.service, new_directory() / "occupied")
    occupied.directory.write_text("a file")
    assert "occupied" in occupied.refused("backup")
    moved = Backed(backed.service, new_directory() / "moved")
    assert "the WAL is already archived to" in moved.refused("backup")
    server = EmbeddedPostgres(backed.service.data / "postgres")
    for command in ("backup", "restore"):
        done = subprocess.run(
            [sys.executable, "manage.py", command, str(backed.directory)],
            cwd=ROOT,
            env=backed.service.environment | {"DATABASE_URL": server.url},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and done.stderr.startswith("CommandError: DATABASE_URL is set"), done.stderr
