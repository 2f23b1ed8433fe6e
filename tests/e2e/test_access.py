"""Access control of the whole service behind nginx: closed writes, tokens, networks, closed reads, and logs without secrets."""

import time

import pytest
from playwright.sync_api import expect

from tests.e2e.clients import Browser, check_accessible
from tests.e2e.service import JobClient, Service

PASSWORD = "correct horse battery"
LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
# Revocations take effect within this time.
EFFECT_SECONDS = 5


@pytest.fixture(scope="module")
def closed(needs_packages, new_directory):
    """A service whose writes are closed, with two processes of each server."""
    settings = {"CDB_OPEN_WRITES": "", "CDB_WORKERS": "2", "CDB_LOG_LEVEL": "debug"}
    with Service(new_directory() / "data", "serve", **settings).running() as running:
        yield running


@pytest.fixture(scope="module")
def operator(closed):
    """A superuser of the admin."""
    closed.environment |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    manage(closed, "createsuperuser", "--no-input", "--username", "operator", "--email", "o@example.org")


@pytest.fixture
def client(closed):
    return JobClient(closed.port)


def manage(service, *arguments):
    done = service.manage(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def create_token(service, name, role, *more):
    token = manage(service, "token", "create", "--name", name, "--role", role, *more)
    assert token.startswith("cdb_") and "\n" not in token
    return {"Authorization": f"Bearer {token}"}


def lock(client, headers=None, status="locked"):
    return client.call("PUT", f"gt_change_status/tiny/{status}", headers=headers)


def test_writes_are_closed_until_a_rule_permits_them(closed, client):
    [line] = [line for line in closed.start_lines if line.startswith("Writes")]
    assert "manage.py token create" in line and "manage.py grant network" in line
    assert client.get(LOOKUP)
    status, body = lock(client)
    assert status == 401 and body["code"] == "authentication_required"
    headers = create_token(closed, "first", "manager", "--expires", "1h")
    assert lock(client, headers)[0] == 200
    assert lock(client, headers, "unlocked")[0] == 200
    changes = client.get("global-tags/tiny/changes")["results"]
    assert {change["actor"] for change in changes if change["action"] == "status"} == {"token:first"}
    assert "first  valid" in " ".join(manage(closed, "token", "list").split("\n")).replace("   ", "  ")
    assert "token first" in manage(closed, "who-may", "lock", "tiny")


def test_a_revocation_takes_effect_in_all_processes(closed, client):
    headers = create_token(closed, "short-lived", "manager")
    for _ in range(20):
        assert client.call("GET", "whoami", headers=headers)[1]["name"] == "token:short-lived"
        assert lock(client, headers, "unlocked")[0] == 200
    manage(closed, "token", "revoke", "short-lived")
    time.sleep(EFFECT_SECONDS)
    # Fewer than the invalid tokens after which a process answers 429.
    for _ in range(10):
        assert lock(client, headers)[1]["code"] == "invalid_token"
        assert client.call("GET", "whoami", headers=headers)[0] == 401


def test_a_person_who_has_logged_in_inserts_behind_nginx(browser, closed, operator):
    """Writes are closed, so the form needs the session. The file is a form of several parts."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{closed.port}")
    page = context.new_page()
    page.goto("/tags/tiny/manage")
    page.get_by_label("Name of the copy").fill("web-copy")
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_role("alert")).to_contain_text("needs the role")
    page.get_by_role("link", name="Log in").click()
    page.fill("#id_username", "operator")
    page.fill("#id_password", PASSWORD)
    page.click("input[type=submit]")
    expect(page.locator("header")).to_contain_text("operator")
    page.get_by_label("Name of the copy").fill("web-copy")
    page.get_by_role("button", name="Clone").click()
    page.goto("/tags/web-copy/insert")
    rows = "payload_type,payload_url,checksum,major_iov,minor_iov\nPixel_Alignment,web/1.root,c,8,0\n"
    page.get_by_label("File: CSV or JSON").set_input_files(
        {"name": "rows.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    )
    page.get_by_role("button", name="Preview the file").click()
    page.get_by_role("button", name="Insert 1 payload").click()
    expect(page.locator("main")).to_contain_text("web/1.root")
    expect(page.locator(".facts")).to_contain_text("operator")
    check_accessible(page)
    page.get_by_role("link", name="Log out").click()
    check_accessible(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    context.close()


def test_no_log_contains_a_secret(closed, client):
    headers = create_token(closed, "secretive", "manager")
    wrong = {"Authorization": "Bearer cdb_thisissecret"}
    lock(client, headers, "unlocked")
    lock(client, wrong)
    client.call("GET", "whoami", headers=wrong)
    secrets = [headers["Authorization"].removeprefix("Bearer "), "thisissecret", PASSWORD]
    secrets.append((closed.data / "secret_key").read_text())
    # All that the service has written: logs, configuration, and what it printed.
    logs = [file for file in closed.data.rglob("*.log*") if file.is_file()]
    assert {"service.log", "error.log", "server.log"} <= {file.name for file in logs}
    texts = {str(file): file.read_text(errors="replace") for file in logs} | {"printed": "\n".join(closed.lines)}
    assert any("token:secretive" in text for text in texts.values())
    for name, text in texts.items():
        assert not [secret for secret in secrets if secret in text], name


def test_reads_are_closed_and_nothing_shared_is_stored(needs_packages, fresh):
    service = fresh(command="serve", CDB_OPEN_WRITES="", CDB_ANONYMOUS_READS="false").start()
    client = JobClient(service.port)
    headers = create_token(service, "job", "reader")
    browser = Browser(service.port)
    paths = [LOOKUP, "globalTags", "globalTag/tiny?light", "gtPayloadLists/tiny", "gt", "global-tags/tiny/export"]
    for path in paths:
        # First with permission, so that a cache could have the response.
        for _ in range(3):
            status, given, body = browser("GET", f"/api/cdb_rest/{path}", **headers)
            assert status == 200 and body
            assert "public" not in given.get("Cache-Control", "") and "X-Cache-Status" not in given
        for method in ("GET", "HEAD"):
            status, _, _ = browser(method, f"/api/cdb_rest/{path}")
            assert status == 401, path
        etag = given.get("ETag")
        if etag:
            assert browser("GET", f"/api/cdb_rest/{path}", **{"If-None-Match": etag})[0] == 401
            assert browser("GET", f"/api/cdb_rest/{path}", **headers, **{"If-None-Match": etag})[0] == 304
    assert client.get("whoami")["permissions"] == []
    assert browser("GET", "/health/ready")[0] == 200
    # The metrics are also for this machine, unless a proxy has passed the request on.
    assert browser("GET", "/metrics")[0] == 200
    assert browser("GET", "/metrics", **{"X-Forwarded-For": "10.1.2.3"})[0] == 401
    assert browser("GET", "/metrics", **{"X-Forwarded-For": "10.1.2.3"}, **headers)[0] == 200
    assert service.stop() == 0
