"""The configuration of the service with DEBUG and without."""

import json
import subprocess
import sys

import pytest

from cdb import env

PARTS = """
import json, sys
from django.conf import settings
from cdb.wsgi import application
from cdb.urls import urlpatterns
from rest_framework.views import APIView
print(json.dumps({
    "apps": list(settings.INSTALLED_APPS),
    "middleware": list(settings.MIDDLEWARE),
    "renderers": [renderer.__name__ for renderer in APIView.renderer_classes],
    "urls": [str(route.pattern) for route in urlpatterns],
    "modules": [name for name in sys.modules if name.startswith("debug_toolbar") or name == "cdb_rest.api.browser_pages"],
}))
"""


def run(code, directory, **variables):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=env.ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "CDB_ENV_FILE": "/dev/null", "CDB_DATA_DIR": str(directory)} | variables,
    )


def parts(directory, **variables):
    result = run(PARTS, directory, **variables)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("variables", [{}, {"DEBUG": "0"}, {"DEBUG": "false"}])
def test_without_debug_nothing_of_the_toolbar_is_there(tmp_path, variables):
    found = parts(tmp_path, **variables)
    assert found["modules"] == []
    assert "debug" not in json.dumps(found).replace('"modules"', "")
    assert found["middleware"][0] == "cdb_rest.middleware.ObservationMiddleware"
    assert found["renderers"] == ["JSONRenderer"]


def test_debug_adds_the_toolbar_around_the_same_service(tmp_path):
    without, found = parts(tmp_path, DEBUG="0"), parts(tmp_path, DEBUG="1")
    assert found["apps"] == [*without["apps"], "debug_toolbar"]
    first, *rest = without["middleware"]
    assert found["middleware"] == [
        first,
        "debug_toolbar.middleware.DebugToolbarMiddleware",
        "cdb_rest.api.browser_pages.BrowserPages",
        *rest,
    ]
    assert found["renderers"] == without["renderers"]
    assert found["urls"] == ["^__debug__/", *without["urls"]]


@pytest.mark.parametrize(
    ("debug", "requirements"),
    [
        ("1", "requirements-dev.txt"),
        ("true", "requirements-dev.txt"),
        ("0", "requirements.txt"),
        ("", "requirements.txt"),
    ],
)
def test_make_run_installs_what_it_needs(debug, requirements):
    planned = subprocess.run(["make", "-n", "run", f"DEBUG={debug}"], cwd=env.ROOT, capture_output=True, text=True)
    assert f"deploy/setup.sh {requirements}" in planned.stdout.splitlines()
