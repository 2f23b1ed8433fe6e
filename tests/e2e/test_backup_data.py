"""Backups of the embedded server, and the data after they are restored: by time, by timeline, after a crash."""

import shutil

import pytest

from cdb.embedded.restoring import restore
from cdb.env import ConfigurationError
from tests.e2e.clock import now


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
