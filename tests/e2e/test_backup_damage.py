"""Restorations from damaged backups, and those that are interrupted: nothing is lost."""

import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from cdb.embedded.backups import verify
from cdb.env import ROOT, ConfigurationError
from tests.e2e.service import copy_data

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
    copy_data(backed.backups.path, backed.directory / "whole")
    return backed


def repair(backed):
    shutil.rmtree(backed.backups.path)
    copy_data(backed.directory / "whole", backed.backups.path)


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
