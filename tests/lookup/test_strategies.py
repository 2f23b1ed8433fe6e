"""The routes of the strategies: they exist if configured, each sends one statement, and their list is correct."""

import os
import subprocess
import sys

import pytest

from cdb.env import ROOT
from cdb_rest.api.urls import STRATEGY_ROUTES, view_of
from cdb_rest.strategies.registry import STRATEGIES
from tests.conftest import PREFIX

pytestmark = pytest.mark.django_db
PATHS = [path for route in STRATEGY_ROUTES for path in route.paths]
QUESTION = "?gtName=tag&majorIOV=1&minorIOV=0"


@pytest.mark.parametrize("path", PATHS)
def test_without_the_setting_nothing_is_there(api, build, path):
    build.tag()
    for spelling in (path, path.rstrip("/")):
        for method in ("GET", "POST", "DELETE"):
            api(method, spelling + QUESTION).error(404, "route_not_found")


@pytest.mark.parametrize(
    ("variables", "served"),
    [
        ({}, False),
        ({"CDB_STRATEGIES": "1"}, True),
        ({"CDB_STRATEGIES": ""}, False),
        ({"DEBUG": "1"}, True),
        ({"DEBUG": "1", "CDB_STRATEGIES": "0"}, False),
    ],
)
def test_the_setting_and_debug_serve_them(variables, served):
    look = (
        "import django; django.setup(); from django.urls import resolve; "
        f"served = [resolve({PREFIX!r} + path).func for path in {PATHS!r}]; "
        "print([getattr(view, 'cls', view).__name__ for view in served])"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "cdb.settings"} | variables
    done = subprocess.run(
        [sys.executable, "-c", look], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    names = [view_of(route).__name__ for route in STRATEGY_ROUTES] if served else ["route_not_found"] * len(PATHS)
    assert done.stdout.strip() == str(names)


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name.startswith("sql")])
def test_a_strategy_in_sql_is_one_statement(api, build, strategies_on, django_assert_num_queries, name):
    build.iov(build.list(build.tag()), (0, 0))
    with django_assert_num_queries(1):
        assert api.get(f"payloadiovs_{name}/{QUESTION}").ok()
