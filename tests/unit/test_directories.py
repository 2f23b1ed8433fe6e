"""Private directories that several processes create at the same time."""

import os
import pwd
import stat

import pytest

from cdb.env import ConfigurationError
from cdb.processes import directories

OTHER = pwd.getpwnam("nobody")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a directory")


def test_a_directory_has_the_mode_in_spite_of_the_umask(tmp_path):
    umask = os.umask(0o077)
    try:
        directories.make_private(tmp_path / "one", None, 0o711)
    finally:
        os.umask(umask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [0o711]


@as_root
def test_two_processes_create_one_directory_at_the_same_time(tmp_path, monkeypatch):
    path, change_owner = tmp_path / "one", os.chown

    def other_process_comes_first(*args, **options):
        monkeypatch.setattr(os, "chown", change_owner)
        directories.make_private(path, OTHER)
        (path / "socket").touch()
        change_owner(*args, **options)

    monkeypatch.setattr(os, "chown", other_process_comes_first)
    directories.make_private(path, OTHER)
    assert path.stat().st_uid == OTHER.pw_uid
    assert [one.name for one in tmp_path.iterdir()] == ["one"]
    assert (path / "socket").exists()


@as_root
def test_a_directory_of_another_account_is_refused(tmp_path):
    path = tmp_path / "one"
    directories.make_private(path, OTHER)
    with pytest.raises(
        ConfigurationError, match=f"{path} must be a directory of uid 0 with mode 0700 \\(got uid .*\\); remove it"
    ):
        directories.make_private(path, None)


@pytest.mark.parametrize("target", [".", "missing"])
def test_a_link_is_refused(tmp_path, target):
    path = tmp_path / "one"
    path.symlink_to(target)
    with pytest.raises(ConfigurationError):
        directories.make_private(path, None)


def test_wider_permissions_are_refused(tmp_path):
    path = tmp_path / "one"
    path.mkdir()
    path.chmod(0o750)
    with pytest.raises(ConfigurationError):
        directories.make_private(path, None)
