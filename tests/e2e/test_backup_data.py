"""Backups of the embedded server, and the data after they are restored, whatever was lost or damaged."""

import contextlib
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import psutil
import psycopg2
import pytest

from cdb.embedded.backup_directory import BackupDirectory
from cdb.embedded.backups import back_up, verify
from cdb.embedded.restoring import restore
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT, ConfigurationError
from tests.e2e.clock import now
from tests.e2e.service import after_first_start

KILLED = """
import os, signal, sys
from pathlib import Path
from cdb.embedded.backup_directory import BackupDirectory
from cdb.embedded.restoring import restore
from cdb.embedded.server import EmbeddedPostgres

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def rename(path, target, original=Path.rename):
    if path.name.startswith("restored-"):
        die()
    return original(path, target)

_, directory, backups, point = sys.argv
Path.rename = rename if point == "rename" else Path.rename
restore(
    EmbeddedPostgres(Path(directory)), BackupDirectory(Path(backups)), until=None, timeline=None,
    read=die if point == "read" else lambda: None, finish=die if point == "finish" else lambda state: None,
)
"""


class Backed:
    """An embedded server with a directory for backups."""

    def __init__(self, directory):
        self.directory = directory
        self.server = EmbeddedPostgres(directory / "postgres", {"fsync": "off"})
        self.backups = BackupDirectory(directory / "backups")
        self.segments = []

    @contextlib.contextmanager
    def running(self):
        self.server.acquire()
        try:
            yield
        finally:
            self.server.release()

    def ask(self, statement, *values):
        with contextlib.closing(psycopg2.connect(self.server.url)) as connection:
            connection.autocommit = True
            cursor = connection.cursor()
            cursor.execute(statement, values)
            return cursor.fetchall()

    def write(self, name):
        self.ask('INSERT INTO "PayloadType" (name) VALUES (%s) RETURNING id', name)

    def kill(self):
        """Kill all processes of the server, as a power failure does: nothing is archived at the end."""
        for process in psutil.process_iter(["cwd"]):
            if process.info["cwd"] == str(self.server.data):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def back_up(self, **options):
        return back_up(self.server, self.backups, **options)

    def restore(self, until=None, timeline=None):
        """What `read` and `finish` got: the names before and those in between."""
        found = []
        restore(
            self.server,
            self.backups,
            until=until,
            timeline=timeline,
            read=self._names,
            finish=lambda before: found.append((before, self._names())),
        )
        return found[0]

    def _names(self):
        return "".join(
            name for (name,) in self.ask("SELECT name FROM \"PayloadType\" WHERE name ~ '^.$' ORDER BY name")
        )

    def written(self):
        with self.running():
            return self._names()


@pytest.fixture
def backed(new_directory):
    directory = new_directory()
    directory.chmod(0o711)
    prepared = after_first_start({"SCENARIO": "tiny", "CDB_IOV_MODE": "continuous"})
    subprocess.run(["cp", "--archive", prepared / "postgres", directory], check=True)
    return Backed(directory)


def test_a_machine_that_is_lost_is_restored_from_incremental_backups(backed):
    with backed.running():
        backed.write("A")
        backed.back_up()
        for name in "BC":
            backed.write(name)
            backed.back_up(incremental=True)
        backed.write("D")
    assert [backup.is_incremental for backup in backed.backups.backups()] == [False, True, True]
    # The data directory of the new machine has nothing yet.
    shutil.rmtree(backed.directory / "postgres")
    assert backed.restore() == (None, "ABCD")
    with backed.running():
        # The first backup after that is a full one.
        with pytest.raises(ConfigurationError, match=r"pg_basebackup failed: .*WAL summaries are required"):
            backed.back_up(incremental=True)
        backed.back_up()
        backed.write("E")
        backed.back_up(incremental=True)
    assert backed.restore() == ("ABCDE", "ABCDE")


@pytest.mark.parametrize("starts", [True, False])
def test_wal_that_was_not_archived_before_a_crash_is_taken_from_the_present_data(backed, starts):
    with backed.running():
        backed.back_up()
        backed.write("B")
        backed.kill()
    if not starts:
        (backed.server.data / "global" / "pg_control").write_bytes(b"")
    before, after = backed.restore()
    assert (before, after) == ("B" if starts else None, "B")


def test_older_backups_are_deleted_and_the_rest_can_be_restored(backed):
    with backed.running():
        backed.back_up()
        backed.write("B")
        backed.back_up(incremental=True)
        backed.write("C")
        earlier = set(backed.backups.wal.iterdir())
        assert backed.backups.prune(1) == 0
        backed.back_up()
        assert backed.backups.prune(1) == 2
        backed.write("D")
    assert len(backed.backups.backups()) == 1
    assert not earlier & set(backed.backups.wal.iterdir())
    assert backed.restore() == ("BCD", "BCD")


def test_backups_of_a_timeline_that_was_left_are_not_used_for_the_latest_one(backed):
    with backed.running():
        backed.back_up()
        backed.write("B")
        until = now()
        backed.write("C")
        backed.back_up()
    assert backed.restore(until) == ("BC", "B")
    with backed.running():
        backed.write("D")
    assert backed.restore() == ("BD", "BD")
    assert backed.restore(timeline=1) == ("BD", "BC")
    assert backed.restore(timeline=2) == ("BC", "BD")
    with pytest.raises(ConfigurationError, match=r"no suitable backup in .* for timeline 9"):
        backed.restore(timeline=9)
    with backed.running():
        backed.back_up()
        backed.write("E")
    # A backup that is not used may be damaged.
    first, second, _ = backed.backups.backups()
    for unused in (first, second):
        (unused.path / "backup_manifest").unlink()
    assert backed.restore() == ("BDE", "BDE")


def test_a_restoration_that_fails_leaves_no_timeline_that_later_ones_would_follow(backed):
    with backed.running():
        backed.write("A")
        backed.back_up()
        backed.write("B")
        until = now()
        backed.write("C")

    def fail(before):
        raise ConfigurationError("the migration failed")

    for _ in range(2):
        with pytest.raises(ConfigurationError, match="the migration failed"):
            restore(backed.server, backed.backups, until=until, timeline=None, read=backed._names, finish=fail)
    with backed.running():
        backed.write("D")
        backed.back_up()
        backed.write("E")
    assert backed.restore() == ("ABCDE", "ABCDE")
    assert backed.restore(until) == ("ABCDE", "AB")


def test_other_files_in_the_backup_directory_are_no_backups(backed):
    with backed.running():
        backed.back_up()
        backed.write("A")
        backed.back_up(incremental=True)
    full, _ = backed.backups.backups()
    for name in ("lost+found", f"{full.path.name}.old"):
        (backed.backups.base / name).mkdir()
    assert backed.restore() == ("A", "A")
    shutil.rmtree(full.path)
    with pytest.raises(ConfigurationError, match="the full backup on which it is based is missing"):
        backed.restore()
    (history,) = backed.backups.wal.glob("*.history.gz")
    history.write_bytes(history.read_bytes()[:-9])
    with pytest.raises(ConfigurationError, match="the history of timeline 2 can't be read"):
        backed.restore()


def flip(path, position=None):
    """Change one bit of a file: of the byte at `position`, or of the one in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if position is None else position] ^= 1
    path.write_bytes(content)


@pytest.fixture
def archived(backed):
    """One with a backup, and three files of WAL after it."""
    with backed.running():
        backed.write("A")
        backed.back_up()
        for name in "BCD":
            backed.write(name)
            [(segment,)] = backed.ask("SELECT pg_walfile_name(pg_switch_wal())")
            backed.segments.append(segment)
    subprocess.run(["cp", "--archive", backed.backups.path, backed.directory / "whole"], check=True)
    return backed


def repair(backed):
    shutil.rmtree(backed.backups.path)
    subprocess.run(["cp", "--archive", backed.directory / "whole", backed.backups.path], check=True)


def test_a_backup_that_is_damaged_is_refused_and_the_data_remain(archived):
    """How a damaged backup is refused; `verify` is what a restoration begins with."""
    base = archived.backups.newest().path
    for damage, message in [
        (lambda: flip(base / "base/1/1259"), "base/1/1259 differs from its checksum"),
        (lambda: (base / "base/1/1259").unlink(), "base/1/1259 is missing"),
        (lambda: (base / "base/1/9999").touch(), "base/1/9999 does not belong to it"),
        (lambda: flip(base / "backup_manifest"), "manifest"),
        (lambda: (base / "backup_manifest").unlink(), "manifest"),
        (lambda: shutil.rmtree(base / "pg_wal"), "pg_waldump failed"),
    ]:
        damage()
        with pytest.raises(ConfigurationError, match=message):
            verify(base)
        repair(archived)
    flip(base / "base/1/1259")
    with pytest.raises(ConfigurationError, match="base/1/1259 differs from its checksum"):
        archived.restore()
    shutil.rmtree(archived.backups.base)
    with pytest.raises(ConfigurationError, match="there is no backup in"):
        archived.restore()
    repair(archived)
    with pytest.raises(ConfigurationError, match="was complete at"):
        archived.restore(datetime.now(UTC) - timedelta(days=1))
    with pytest.raises(ConfigurationError, match="has no change after"):
        archived.restore(datetime.now(UTC) + timedelta(days=1))
    assert archived.written() == "ABCD"


def test_wal_that_is_damaged_or_missing_is_not_the_end_of_the_wal(archived):
    shutil.rmtree(archived.directory / "postgres")
    wal = archived.backups.wal
    first, second, _ = archived.segments
    for damage, message in [
        (lambda: (wal / f"{first}.gz").unlink(), f"the WAL file {first} is not in"),
        # A bit of gzip's checksum. Others can be changed without any effect on the zeros at the end of a WAL file.
        (lambda: flip(wal / f"{second}.gz", -8), f'could not restore file "{second}" from archive'),
    ]:
        damage()
        with pytest.raises(ConfigurationError, match=message):
            archived.restore()
        assert not archived.server.data.exists()
        repair(archived)
    assert archived.restore() == (None, "ABCD")


@pytest.mark.parametrize("point", ["read", "finish", "rename"])
def test_a_restoration_that_is_killed_loses_nothing(backed, point):
    with backed.running():
        backed.write("A")
        backed.back_up()
    command = [sys.executable, "-c", KILLED, backed.directory / "postgres", backed.backups.path, point]
    assert subprocess.run(command, cwd=ROOT).returncode < 0
    if point == "rename":
        with pytest.raises(ConfigurationError, match="a restoration was interrupted: rename"), backed.running():
            pass
    else:
        assert backed.written() == "A"
    backed.restore()
    assert not list((backed.directory / "postgres").glob("restored-*"))
    assert backed.written() == "A"


def test_a_disk_for_backups_that_goes_away_loses_no_wal(backed):
    gone = backed.directory / "gone"
    with backed.running():
        backed.back_up()
        backed.backups.path.rename(gone)
        backed.write("B")
        backed.ask("SELECT pg_switch_wal()")
        deadline = time.monotonic() + 60
        while not backed.ask("SELECT failed_count FROM pg_stat_archiver")[0][0]:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        gone.rename(backed.backups.path)
    shutil.rmtree(backed.directory / "postgres")
    assert backed.restore() == (None, "B")


def test_the_server_of_a_restoration_that_is_in_use_is_left_alone(backed):
    with backed.running():
        backed.back_up()
        with pytest.raises(ConfigurationError, match="in use; stop the service first"):
            backed.restore()
        backed.write("A")
    assert backed.written() == "A"
