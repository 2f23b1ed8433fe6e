"""Login of persons at an identity provider, with a real browser."""

import json
import subprocess
import sys
import time
from collections import Counter

import psycopg2
import pytest
from playwright.sync_api import expect

from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT
from cdb.serving.sizes import other_workers
from cdb_rest.access.memory import LIMIT
from loadtests.service import free_port
from tests.e2e.clients import Browser
from tests.e2e.identity_provider import CLIENT_ID, CLIENT_SECRET, PASSWORD
from tests.e2e.service import Service
from tests.waiting import is_open, wait_until

LOCK = "/api/cdb_rest/gt_change_status/tiny/unlocked"
ISSUERS = """
[exp]
issuer = "{url}"
audience = "https://cdb.example.org"
algorithms = ["RS256"]
subject = "sub"
client_id = "{client}"
client_secret_file = "client-secret"
"""
# Changes of rules take effect within this time.
EFFECT_SECONDS = 3


def grant(group, role):
    return ["grant", "claim", f"/experiment/{group}", "--issuer", "exp", "--claim", "groups", "--role", role]


EXPERTS, ADMINISTRATORS = grant("calibration", "manager"), grant("administrators", "administrator")


class Provider:
    """The identity provider as a process."""

    def __init__(self, redirect_uri):
        self.port, self.redirect_uri = free_port(), redirect_uri
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, "-m", "tests.e2e.identity_provider", str(self.port), self.redirect_uri]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: is_open(self.port))
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def setting(needs_packages, new_directory):
    """A service behind nginx, and its identity provider."""
    directory = new_directory()
    service = Service(directory / "data", "serve", CDB_OPEN_WRITES="", CDB_ISSUERS_FILE=str(directory / "issuers.toml"))
    provider = Provider(f"http://127.0.0.1:{service.port}/oidc/callback/").start()
    (directory / "client-secret").write_text(CLIENT_SECRET)
    (directory / "issuers.toml").write_text(ISSUERS.format(url=provider.url, client=CLIENT_ID))
    try:
        with service.running():
            for rule in (EXPERTS, ADMINISTRATORS):
                granted = service.manage(*rule)
                assert granted.returncode == 0, granted.stderr
            time.sleep(EFFECT_SECONDS)
            yield service, provider
    finally:
        provider.kill()


@pytest.fixture
def page(setting, browser):
    context = browser.new_context()
    yield context.new_page()
    context.close()


def log_in(page, service, name, start="/oidc/authenticate/"):
    page.goto(f"http://127.0.0.1:{service.port}{start}")
    if start.startswith(("/admin", "/login")):
        page.get_by_text("Log in with exp").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button").click()
    # The provider sends the browser back, and the service then asks the provider for the tokens.
    page.wait_for_url(f"http://127.0.0.1:{service.port}/**")


def whoami(page, service):
    return json.loads(page.request.get(f"http://127.0.0.1:{service.port}/api/cdb_rest/whoami").text())


def write(page, service):
    """A write with the session of the browser and a CSRF token."""
    origin = f"http://127.0.0.1:{service.port}"
    # The cookie with the token comes with the first page that has a form.
    page.request.get(f"{origin}/admin/login/")
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    return page.request.put(f"{origin}{LOCK}", headers={"X-CSRFToken": cookies.get("csrftoken", "")}).status


def test_an_expert_logs_in_and_has_the_role_of_the_group(setting, page):
    service, _ = setting
    # A login that was not begun here fails, and leads to a new one.
    page.goto(f"http://127.0.0.1:{service.port}/oidc/callback/?code=x&state=y")
    expect(page.get_by_role("heading", name="Login failed")).to_be_visible()
    log_in(page, service, "alice", "/login?next=/tags")
    expect(page.get_by_role("heading", name="Global tags")).to_be_visible()
    found = whoami(page, service)
    assert (found["name"], found["method"]) == ("exp:id-of-alice", "session")
    assert [one["role"] for one in found["permissions"]] == ["manager"]
    assert write(page, service) == 200
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert cookies["sessionid"]["httpOnly"] and cookies["sessionid"]["sameSite"] == "Lax"
    # She is no administrator.
    page.goto(f"http://127.0.0.1:{service.port}/admin/")
    assert "/admin/login/" in page.url


def administers(page, service):
    page.goto(f"http://127.0.0.1:{service.port}/access")
    return page.locator("form select[name=kind]").count() == 1


def test_an_administrator_is_one_until_the_rule_or_the_session_is_revoked(setting, page):
    service, _ = setting
    log_in(page, service, "root", "/login?next=/access")
    assert administers(page, service)
    [rule] = [line.split()[0] for line in service.manage("who-may").stdout.splitlines() if "administrator" in line]
    service.manage("revoke", rule)
    time.sleep(EFFECT_SECONDS)
    assert not administers(page, service)
    assert service.manage(*ADMINISTRATORS).returncode == 0
    time.sleep(EFFECT_SECONDS)
    assert administers(page, service)
    service.manage("token", "revoke-issued", "--issuer", "exp", "--sub", "id-of-root")
    time.sleep(EFFECT_SECONDS)
    assert not administers(page, service) and whoami(page, service)["code"] == "invalid_token"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "code=x",
        "state=x",
        "code=x&state=y",
        "error=access_denied&state=x",
        "code=%00&state=x",
        "code=x&code=y&state=z",
    ],
)
def test_a_forged_callback_is_no_login(setting, query):
    service, _ = setting
    browser = Browser(service.port)
    browser.host = "127.0.0.1"
    assert browser("GET", "/oidc/authenticate/")[0] == 302
    status, _, _ = browser("GET", f"/oidc/callback/?{query}")
    assert status in (400, 403)
    _, _, body = browser("GET", "/api/cdb_rest/whoami")
    assert json.loads(body)["method"] == ""


# The last test of this file, because no login can begin for a minute after it.
def test_starts_of_logins_do_not_store_sessions_without_limit(setting):
    service, _ = setting
    with psycopg2.connect(EmbeddedPostgres(service.data / "postgres").url) as connection, connection.cursor() as cursor:

        def sessions():
            cursor.execute("SELECT count(*) FROM django_session")
            return cursor.fetchone()[0]

        before = sessions()
        known = Browser(service.port)
        known.host = "127.0.0.1"
        assert known("GET", "/oidc/authenticate/")[0] == 302
        processes = other_workers(cores=1)
        statuses = Counter()
        for number in range((processes + 1) * LIMIT):
            # A cookie that was never given out is no session.
            browser = Browser(service.port)
            browser.host = "127.0.0.1"
            browser.cookies = {"sessionid": f"invented{number}"} if number % 2 else {}
            statuses[browser("GET", "/oidc/authenticate/")[0]] += 1
        assert set(statuses) == {302, 429}
        assert sessions() - before <= processes * LIMIT
        # A browser that has a session may begin again.
        assert known("GET", "/oidc/authenticate/")[0] == 302
