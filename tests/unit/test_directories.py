"""Private directories, which several processes may create at the same time, and their lock."""

import subprocess
import sys

import pytest

from cdb.env import ConfigurationError
from cdb.serving import layout


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
