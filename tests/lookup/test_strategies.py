"""The routes of the strategies: they exist if configured, each sends one statement, and their list is correct."""

import json
import os
import re
import subprocess
import sys

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cdb.env import ROOT
from cdb_rest import named_sql
from cdb_rest.api.urls import STRATEGY_ROUTES, served_routes, view_of
from cdb_rest.routes import ROUTES
from cdb_rest.strategies import own
from cdb_rest.strategies.indexes import complete_indexes
from cdb_rest.strategies.registry import STRATEGIES
from tests.conftest import PREFIX

pytestmark = pytest.mark.django_db

PATHS = [path for route in STRATEGY_ROUTES for path in route.paths]
QUESTION = "?gtName=tag&majorIOV=1&minorIOV=0"


def test_there_is_a_route_for_each_strategy_and_one_for_the_list():
    assert {"payloadiovs_strategies/", *(f"payloadiovs_{name}/" for name in STRATEGIES)} == set(PATHS)


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


def test_the_switch_changes_the_served_routes(settings):
    assert served_routes() == ROUTES
    settings.CDB_STRATEGIES = True
    assert served_routes() == ROUTES + STRATEGY_ROUTES


def test_the_schema_has_them_where_they_are_served(api, strategies_on):
    described = json.loads(api.get("/api/schema/").content)["paths"]
    assert {PREFIX + path for path in PATHS} <= set(described)
    assert described[PREFIX + "payloadiovs_sql_group/"]["get"]["description"] == STRATEGIES["sql_group"].description


def test_the_list_says_which_indexes_exist(api, strategies_on):
    listed = api.get("payloadiovs_strategies/").ok()
    assert [entry["name"] for entry in listed] == list(STRATEGIES)
    for entry in listed:
        assert f"{PREFIX}{entry['route']}".startswith(f"{PREFIX}payloadiovs_{entry['name']}")
        assert entry["description"].endswith(".")
        assert entry["index_exists"] is (entry["index"] == "payload_iov_lookup")


@pytest.mark.django_db(transaction=True)
def test_the_list_sees_indexes_that_were_made(api, strategies_on, strategy_indexes):
    assert all(entry["index_exists"] for entry in api.get("payloadiovs_strategies/").ok())


def test_production_carries_none_of_their_indexes():
    assert not any("strategy" in name for name in complete_indexes())


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name.startswith("sql")])
def test_a_strategy_in_sql_is_one_statement(api, build, strategies_on, django_assert_num_queries, name):
    build.iov(build.list(build.tag()), (0, 0))
    with django_assert_num_queries(1):
        assert api.get(f"payloadiovs_{name}/{QUESTION}").ok()


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name.startswith("sql")])
def test_moments_are_compared_without_division_or_floats(name):
    statements = {name: text for name, text in named_sql.STATEMENTS.items() if name.startswith("strategy_")}
    statement = named_sql.load("lookup") if name == "sql_lateral" else statements[f"strategy_{name}"]
    assert not re.search(r" / |float|double", statement.split("SELECT", 1)[1])


def test_with_debug_the_function_s_statement_is_sent_in_the_open(api, build, strategies_on, settings):
    build.iov(build.list(build.tag()), (0, 0))
    settings.DEBUG = True
    with CaptureQueriesContext(connection) as queries:
        answer = api.get(f"payloadiovs_sql_lateral/{QUESTION}").ok()
    sent = queries[-1]["sql"]
    assert "LATERAL" in sent and "cdb_answer" not in sent
    # The route of the service itself stays what it is.
    with CaptureQueriesContext(connection) as queries:
        assert api.get(f"payloadiovs/{QUESTION}").ok() == answer
    assert len(queries) == 1 and "cdb_answer" in queries[0]["sql"]
    api.get("payloadiovs_sql_lateral/?gtName=missing&majorIOV=1&minorIOV=0").error(404, "global_tag_not_found")


def test_the_statement_in_the_open_is_that_of_the_function():
    assert named_sql.load("lookup") == own.STATEMENT
