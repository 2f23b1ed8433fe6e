"""The modules that a process loads at its start, and the memory that it shares."""

import os
import re
import subprocess
import sys

import pytest

from cdb.env import ROOT


@pytest.fixture
def run(tmp_path):
    """Runs Python code in a process with a data directory of its own; gives the words that it prints."""

    def run(code, *arguments):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=False,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"CDB_DATA_DIR": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_the_application_that_gunicorn_loads_has_its_routes(run):
    code = "import sys, cdb.wsgi; print([name in sys.modules for name in sys.argv[1:]].count(True))"
    assert run(code, "cdb.urls", "cdb_rest.api.views.lookup", "cdb_rest.api.schema") == ["3"]


def test_workers_collect_garbage_but_not_among_what_was_loaded_before(run):
    code = """
import gc, runpy, types
configuration = runpy.run_path("deploy/gunicorn.conf.py")
print(gc.isenabled())
configuration["when_ready"](types.SimpleNamespace(cfg=types.SimpleNamespace(proc_name="lookups")))
print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""
    assert run(code) == ["False", "True", "True"]


def test_a_command_collects_seldom(run):
    code = (
        "import gc; from cdb.processes import memory; print(gc.get_threshold()[0]); memory.reduce_garbage_collection()"
    )
    [before, after] = run(f"{code}; print(gc.get_threshold()[0])")
    assert int(before) * 10 < int(after)


def test_services_of_the_tests_start_with_the_packages_of_production_alone(run):
    code = """
import sys, cdb.wsgi
from importlib.metadata import packages_distributions
packages = packages_distributions()
print(*{package for name, module in sys.modules.items() if module for package in packages.get(name.split(".")[0], ())})
"""
    # The argument makes it a program of the service.
    loaded = {package.lower().replace("_", "-") for package in run(code, "manage.py")}
    pinned = set(re.findall("^([^ #=]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    # A virtual environment loads setuptools in each process.
    assert "djangorestframework" in loaded and loaded - {"setuptools"} <= pinned
