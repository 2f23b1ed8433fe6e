"""Private directories, which several processes may create at the same time, and their lock."""

import os
import pwd
import subprocess
import sys

import pytest

from cdb.env import ConfigurationError
from cdb.processes import directories
from cdb.serving import layout

OTHER = pwd.getpwnam("nobody")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a directory")


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


@pytest.fixture(autouse=True)
def _directories(monkeypatch, tmp_path):
    for name in ("directory", "sockets", "temporary"):
        monkeypatch.setattr(layout, name, lambda path=tmp_path / name: path)


def test_a_second_service_is_refused():
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()",
            str(layout.directory().mkdir() or layout.directory() / "lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        holder.stdout.readline()
        with pytest.raises(ConfigurationError, match="another make serve uses"):
            layout.lock()
        holder.communicate(b"\n")
