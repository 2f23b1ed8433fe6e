"""deploy/setup.sh: the messages for a machine that lacks something."""

import os
import subprocess
import sys

import pytest

from cdb.env import ROOT


def setup(python, cwd=ROOT):
    return subprocess.run(
        [str(ROOT / "deploy" / "setup.sh"), "requirements.txt"],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHON": str(python)},
    )


@pytest.fixture
def fake_python(tmp_path):
    """A Python that fails where its command line contains a text, and succeeds elsewhere."""

    def make(text):
        script = tmp_path / "python"
        script.write_text(
            f'#!/bin/sh\ncase "$*" in *"{text}"*) exit 1;; *-V*) echo Python 3.9.2;; *print*) echo 3.11;; esac\n'
        )
        script.chmod(0o755)
        return script

    return make


def test_no_python(tmp_path):
    result = setup("no-such-python", tmp_path)
    assert result.returncode == 1
    assert "no-such-python was not found" in result.stderr and "apt-get install python3 python3-venv" in result.stderr


def test_an_old_python(fake_python, tmp_path):
    result = setup(fake_python("version_info < (3, 11)"), tmp_path)
    assert result.returncode == 1
    assert "Python 3.11 or newer is needed" in result.stderr and "Python 3.9.2" in result.stderr


def test_a_second_run_has_nothing_to_do(tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# nothing is needed\n")
    first, second = setup(sys.executable, tmp_path), setup(sys.executable, tmp_path)
    assert (first.returncode, first.stdout) == (0, "Making .venv\nInstalling requirements.txt\n"), first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    requirements.write_text("# still nothing\n")
    assert setup(sys.executable, tmp_path).stdout == "Installing requirements.txt\n"
