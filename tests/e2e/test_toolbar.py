"""DEBUG: what the debug toolbar records, for whom it is, and responses to programs, which are as ever."""

import http.client
import json

import pytest

from cdb.embedded.server import EmbeddedPostgres
from tests.e2e.service import Service

PREFIX = "/api/cdb_rest/"
LOOKUP = f"{PREFIX}payloadiovs/?gtName=tiny-moderate&majorIOV=5&minorIOV=0"
IN_THE_OPEN = LOOKUP.replace("payloadiovs/", "payloadiovs_strategies/sql_lateral/")
TAG = f"{PREFIX}globalTag/tiny-moderate"

PATHS = [LOOKUP, IN_THE_OPEN, TAG, f"{TAG}?light", PREFIX, "/health/ready", "/api/schema/", "/api/nowhere"]


@pytest.fixture(scope="module")
def plain(new_directory):
    """A service as in production, but for the strategies, which DEBUG serves as well."""
    with Service(new_directory() / "data", SCENARIO="tiny-moderate", CDB_STRATEGIES="1").running() as running:
        yield running


@pytest.fixture(scope="module")
def debugging(plain, new_directory):
    """A service with DEBUG on the same database."""
    url = EmbeddedPostgres(plain.data / "postgres").url
    with Service(new_directory() / "data", DEBUG="1", CDB_WORKERS="0", DATABASE_URL=url).running() as running:
        yield running
    said = running.lines[len(running.start_lines) :]
    assert [line for line in said if "[cdb.request]" not in line] == ["Stopping."]


def ask(service, path, method="GET", body=None, accept="*/*", source="127.0.0.1", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60, source_address=(source, 0))
    try:
        connection.request(method, path, body, {"Accept": accept} | headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_programs_get_the_same_bytes_as_without_debug(plain, debugging, path):
    assert ask(debugging, path) == ask(plain, path)


def test_only_this_machine_is_shown_the_toolbar(debugging):
    assert b"djDebug" in ask(debugging, "/tags", accept="text/html")[2]
    status, _, content = ask(debugging, "/tags", accept="text/html", source="127.0.0.2")
    assert status == 200 and b"djDebug" not in content
    assert ask(debugging, "/__debug__/history_refresh/", source="127.0.0.2")[0] == 404


def test_the_sql_panel_has_the_statement_of_the_lookup(debugging):
    ask(debugging, LOOKUP)
    document = json.loads(ask(debugging, "/__debug__/history_refresh/?request_id=none")[2])
    number = next(one["id"] for one in document["requests"] if "/payloadiovs/" in one["content"])
    panel = json.loads(ask(debugging, f"/__debug__/render_panel/?request_id={number}&panel_id=SQLPanel")[2])["content"]
    assert "1 query" in panel and "cdb_answer(" in panel
