"""The client as users install it: `pip install` into a new virtual environment."""

import json
import os
import subprocess
import sys

import pytest

from cdb.env import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The programs of a virtual environment with the client."""
    directory = tmp_path_factory.mktemp("client")
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    pip = [directory / "bin/pip", "install", "--quiet", "--disable-pip-version-check", ROOT / "clients/python"]
    subprocess.run(pip, check=True)
    return directory / "bin"


def run(*command):
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, env=clean, capture_output=True, text=True)


def test_it_needs_few_packages(installed):
    found = json.loads(run(installed / "pip", "list", "--format=json", "--disable-pip-version-check").stdout)
    names = {one["name"].lower() for one in found} - {"pip", "setuptools"}
    assert "cdb-client" in names and len(names) <= 8, names


def test_the_command_and_the_module_work(installed):
    assert run(installed / "cdb", "--help").stdout.startswith("Usage: cdb ")
    refused = run(installed / "cdb", "--server", "http://127.0.0.1:1", "--retry-for", "0", "tags")
    assert refused.returncode == 75 and refused.stderr.count("\n") == 1
    assert run(installed / "python", "-c", "from cdb_client import Client").returncode == 0
