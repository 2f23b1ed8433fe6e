"""DEBUG: the debug toolbar in a real browser, and responses to programs, which are as ever."""

import http.client

import pytest
from playwright.sync_api import expect

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


@pytest.fixture
def page(browser, debugging):
    """A tab; at its end no script may have failed."""
    failures = []
    context = browser.new_context(base_url=f"http://127.0.0.1:{debugging.port}")
    tab = context.new_page()
    tab.on("pageerror", lambda error: failures.append(error))
    yield tab
    context.close()
    assert failures == []


def ask(service, path, method="GET", body=None, accept="*/*", source="127.0.0.1", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60, source_address=(source, 0))
    try:
        connection.request(method, path, body, {"Accept": accept} | headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type"), response.read()
    finally:
        connection.close()


def open_panel(page, name):
    handle = page.locator("#djShowToolBarButton")
    handle.or_(page.locator("#djDebugToolbar")).filter(visible=True).wait_for()
    if handle.is_visible():
        handle.click()
    page.locator(f"#djdt-{name} .{name}").click()


def open_request(page, path):
    """Send a request as a program does, and show it in the panels."""
    page.goto("/tags")
    page.evaluate("path => fetch(path).then(answer => answer.text())", path)
    open_panel(page, "HistoryPanel")
    row = page.locator("#HistoryPanel").get_by_role("row").filter(has_text=path.partition("?")[0]).first
    row.get_by_role("button", name="Switch").click()


def test_the_sql_panel_has_the_statement_of_the_lookup_and_its_plan(page):
    open_request(page, LOOKUP)
    # Until then, the panel is that of the page.
    expect(page.locator("#djdt-SQLPanel")).to_contain_text("1 query")
    open_panel(page, "SQLPanel")
    panel = page.locator("#SQLPanel")
    panel.locator(".djToggleSwitch").click()
    expect(panel).to_contain_text("1 query")
    expect(panel.get_by_text("cdb_answer(").first).to_be_visible()
    panel.get_by_role("button", name="Expl").click()
    plan = page.locator("#djDebugWindow")
    expect(plan).to_be_visible()
    expect(plan).to_contain_text("Function Scan on cdb_answer")
    expect(plan).to_contain_text("actual time")


@pytest.mark.parametrize("path", PATHS)
def test_programs_get_the_same_bytes_as_without_debug(plain, debugging, path):
    assert ask(debugging, path) == ask(plain, path)


def test_only_this_machine_is_shown_the_toolbar(debugging):
    assert b"djDebug" in ask(debugging, "/tags", accept="text/html")[2]
    status, _, content = ask(debugging, "/tags", accept="text/html", source="127.0.0.2")
    assert status == 200 and b"djDebug" not in content
    assert ask(debugging, "/__debug__/history_refresh/", source="127.0.0.2")[0] == 404
