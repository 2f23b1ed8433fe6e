"""Backups of a running service, and the state of the service after they are restored."""

import time
from email.utils import parsedate_to_datetime

import pytest

from tests.e2e.service import JobClient, raw

LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=900&minorIOV=0"


class Backed:
    """A service, a file for its backup, and writes that it has acknowledged."""

    def __init__(self, service, file):
        self.service = service
        self.file = file

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

    def changes(self):
        """The change log of the tag, the newest change first."""
        return self.client.get("global-tags/tiny/changes")["results"]

    def follow(self, cursor):
        """The actions after a cursor of `changes`, the next cursor, and whether changes were lost."""
        found = self.client.get(f"changes?after={cursor}")
        return [change["action"] for change in found["changes"]], found["cursor"], found["lost"]

    def manage(self, command, *options):
        done = self.service.manage(command, str(self.file), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, command, *options, file=None):
        """The line that a command fails with. The data remain."""
        done = self.service.manage(command, str(file or self.file), *options)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, (done.stdout, done.stderr)
        return done.stderr


@pytest.fixture
def backed(fresh, new_directory):
    return Backed(fresh().start(), new_directory() / "cdb.dump")


def validators(backed):
    """The validators that a cache gets with a lookup, as soon as it gets all of them."""
    request = f"GET /api/cdb_rest/{LOOKUP} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    while True:
        status, headers, _ = raw(backed.service.port, request)
        assert status == 200
        if "last-modified" in headers:
            return headers["etag"], headers["last-modified"]
        time.sleep(0.1)


def conditional(backed, header, value):
    request = f"GET /api/cdb_rest/{LOOKUP} HTTP/1.1\r\nHost: localhost\r\n{header}: {value}\r\n\r\n"
    return raw(backed.service.port, request.encode())[0]


def test_errors_lose_nothing_and_after_an_older_backup_is_restored_no_validator_is_used_again(backed, new_directory):
    backed.write("A")
    kept, kept_cursor = validators(backed), backed.follow("now")[1]
    assert "made and read back" in backed.manage("backup")
    assert backed.file.stat().st_mode & 0o777 == 0o600
    # Each error is one line and loses nothing.
    assert "choose a new file" in backed.refused("backup")
    assert "stop the service first" in backed.refused("restore", "--replace")
    nowhere, damaged = new_directory() / "missing" / "cdb.dump", new_directory() / "cdb.dump"
    assert "No such file or directory" in backed.refused("backup", file=nowhere)
    backed.write("B")
    # Of a cache, and of a job that wrote its revision down.
    lost, lost_revision = validators(backed), backed.changes()[0]["revision"]
    assert lost != kept
    assert backed.client.call("PUT", "gt_change_status/tiny/frozen")[0] == 200
    actions, lost_cursor, _ = backed.follow(kept_cursor)
    assert actions == ["insert", "status"]
    assert backed.service.stop() == 0

    assert "has content; with --replace" in backed.refused("restore")
    # The tools' own words.
    assert "pg_restore failed: could not open input file" in backed.refused("restore", "--replace", file=nowhere)
    whole = backed.file.read_bytes()
    damaged.write_bytes(whole[: len(whole) * 2 // 3])
    assert "pg_restore failed: " in backed.refused("restore", "--replace", file=damaged)
    printed = backed.manage("restore", "--replace")
    assert "Revisions continue from" in printed and "tiny" in printed
    backed.service.start()
    assert backed.written("A", "B") == "A"
    assert backed.changes()[0]["revision"] > lost_revision
    backed.write("C")
    etag, modified = validators(backed)
    assert etag not in (kept[0], lost[0]) and parsedate_to_datetime(modified) > parsedate_to_datetime(lost[1])
    for old in (kept, lost):
        assert conditional(backed, "If-None-Match", old[0]) == conditional(backed, "If-Modified-Since", old[1]) == 200
    assert conditional(backed, "If-None-Match", etag) == conditional(backed, "If-Modified-Since", modified) == 304
    assert [change["action"] for change in backed.changes()][:2] == ["insert", "restore"]
    actions, cursor, lost = backed.follow(kept_cursor)
    assert (actions, lost) == (["restore", "insert"], False)
    assert backed.follow(lost_cursor) == (actions, cursor, True)
    assert backed.follow(cursor) == ([], cursor, False)

    # Caches may keep responses for the frozen tag that was lost, so other content can be frozen under another name only.
    status, answer = backed.client.call("PUT", "gt_change_status/tiny/frozen")
    assert (status, answer["code"]) == (409, "name_retired")
    assert backed.client.call("POST", "cloneGlobalTag/tiny/other")[0] in (200, 201)
    assert backed.client.call("PUT", "gt_change_status/other/frozen")[0] == 200
    # Payload types alone are content, too.
    empty = "from django.db import connection; connection.cursor().execute('TRUNCATE \"GlobalTag\" CASCADE')"
    assert backed.service.manage("shell", "-c", empty).returncode == 0
    assert backed.service.stop() == 0
    assert "has content; with --replace" in backed.refused("restore")
