"""The message of a test that is skipped because a program is missing."""

import subprocess
import sys

import pytest

from cdb.env import ROOT
from cdb.serving import program
from tests import programs


@pytest.fixture
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "MORE_PATHS", ())
    monkeypatch.setattr(programs, "TOOLS", tmp_path)


def reason(function, *names):
    with pytest.raises(pytest.skip.Exception) as skipped:
        function(*names)
    return str(skipped.value)


def test_the_reason_names_the_package(nothing_installed):
    assert reason(programs.require, "promtool") == "promtool is missing: apt-get install prometheus"
    several = "nginx, promtool and prometheus are missing: apt-get install nginx-light prometheus"
    assert reason(programs.require, "nginx", "promtool", "prometheus") == several
    assert reason(programs.fetched, "helm").endswith("missing: make package-tools, which needs Go 1.24 or newer")


def test_the_mark_skips_for_the_same_reason(nothing_installed, tmp_path):
    (tmp_path / "wrk").touch(mode=0o755)
    assert programs.needs("wrk", "curl").args == (True,)
    assert programs.needs("wrk", "curl").kwargs == {"reason": "curl is missing: apt-get install curl"}
    assert programs.needs("wrk").args == (False,)
    programs.require("wrk")


def test_a_program_without_a_package_is_an_error_also_where_it_is_installed():
    with pytest.raises(KeyError):
        programs.require("sh")


def test_the_service_names_the_same_packages():
    assert program.PACKAGES.items() <= programs.PACKAGES.items()


def test_the_missing_packages_are_printed_without_any_package_of_python(tmp_path):
    command = [sys.executable, "-I", "-S", str(ROOT / "tests" / "programs.py")]
    printed = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True).stdout
    assert {"podman", "wrk"} <= set(printed.split()) <= set(programs.PACKAGES.values())
