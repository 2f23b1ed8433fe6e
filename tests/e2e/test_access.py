"""Access control of the whole service behind nginx: closed writes, tokens, networks, closed reads, and logs without secrets."""

import re
import time

import pytest
from playwright.sync_api import expect

from tests.e2e.clients import DRAWN, Browser, check_accessible, check_narrow, tabs
from tests.e2e.service import JobClient, Service

PASSWORD = "correct horse battery"
LOOKUP = "payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
LOCK = "from cdb_rest.writes.global_tags import change_status; change_status(name='web-copy', status='locked')"
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


@pytest.fixture
def page(browser, closed, operator):
    """A tab of a browser; no script of it fails."""
    with tabs(browser, f"http://127.0.0.1:{closed.port}") as open_tab:
        yield open_tab()


def log_in(page, name="operator"):
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page.locator("header")).to_contain_text(name)


def test_a_file_is_proposed_for_a_locked_tag_and_accepted_behind_nginx(closed, operator, browser):
    """Writes are closed, so the forms need sessions. The file is a form of several parts."""
    people = "from django.contrib.auth.models import User; User.objects.create_user('alice', password={!r})"
    manage(closed, "shell", "-c", people.format(PASSWORD))
    with tabs(browser, f"http://127.0.0.1:{closed.port}") as open_tab:
        boss, alice = open_tab(color_scheme="dark"), open_tab()
        boss.goto("/tags")
        boss.get_by_role("link", name="Log in").click()
        check_accessible(boss)
        log_in(boss)
        boss.goto("/tags/tiny/manage")
        boss.get_by_label("Name of the clone").fill("web-copy")
        boss.get_by_role("button", name="Clone").click()
        boss.goto("/tags/web-copy/manage")
        boss.locator("input[name=accepts_requests]").check()
        boss.get_by_role("form", name="Limits").get_by_role("button").click()
        manage(closed, "shell", "-c", LOCK)
        alice.goto("/login?next=/tags/web-copy/insert")
        log_in(alice, "alice")
        rows = 'payload_type,payload_url,checksum,since,until\nPixel_Alignment,web/1.root,,"5,0","6,0"\n'
        alice.get_by_label("File: CSV or JSON").set_input_files(
            {"name": "rows.csv", "mimeType": "text/csv", "buffer": rows.encode()}
        )
        alice.get_by_role("button", name="Preview the file").click()
        alice.get_by_label("Reason").fill("The survey of May")
        check_accessible(alice)
        alice.get_by_role("button", name="Propose", exact=True).click()
        expect(alice.locator("#decision")).to_contain_text("alice has no permission")
        alice.get_by_role("form", name="Comment").get_by_label("Comment").fill("Please look at run 5.")
        alice.get_by_role("button", name="Comment").click()
        boss.goto("/")
        boss.get_by_role("link", name="Requests").click()
        boss.get_by_role("row", name="The survey of May").get_by_role("link").first.click()
        expect(boss.get_by_text("Please look at run 5.")).to_be_visible()
        # The preview comes by itself, and is drawn.
        expect(boss.get_by_role("button", name="Accept")).to_be_visible()
        assert boss.evaluate(DRAWN, boss.query_selector("canvas.plan"))
        check_accessible(boss)
        boss.set_viewport_size({"width": 390, "height": 800})
        check_narrow(boss)
        boss.get_by_role("form", name="Accept").get_by_label("Comment").fill("Thank you")
        boss.get_by_role("button", name="Accept").click()
        expect(boss.locator("#decision")).to_contain_text("Thank you")
        boss.get_by_role("link", name=re.compile("change .* of web-copy")).click()
        expect(boss.locator(".facts")).to_contain_text("operator")
        expect(boss.locator("main")).to_contain_text("web/1.root")
        alice.reload()
        expect(alice.locator("#decision")).to_contain_text("Accepted by")
        check_accessible(alice)
        alice.set_viewport_size({"width": 390, "height": 800})
        for path in ("/requests?state=", alice.url):
            alice.goto(path)
            check_narrow(alice)
        alice.get_by_role("link", name="Log out").click()
        check_accessible(alice)
        alice.get_by_role("button", name="Log out").click()
        expect(alice.get_by_role("link", name="Log in")).to_be_visible()


def test_the_input_of_a_form_is_there_again_after_a_login(page):
    page.goto("/login?next=/new")
    log_in(page)
    page.get_by_label("Name of the tag").fill("typed-once")
    page.get_by_label("Comment").fill("a long text")
    # The session ends, as after eight hours.
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Create the tag").click()
    expect(page.get_by_role("main").get_by_text("You are not logged in").first).to_be_visible()
    check_accessible(page)
    page.get_by_role("main").get_by_role("link", name="Log in").first.click()
    log_in(page)
    expect(page.get_by_label("Name of the tag")).to_have_value("typed-once")
    expect(page.get_by_label("Comment")).to_have_value("a long text")
    page.get_by_role("button", name="Create the tag").click()
    expect(page.get_by_role("heading", name="typed-once")).to_be_visible()
    # It comes back once only.
    page.goto("/new")
    expect(page.get_by_label("Name of the tag")).to_have_value("")
    assert page.evaluate("() => sessionStorage.getItem('input')") is None


def test_an_administrator_changes_rules_and_tokens_and_finds_things(page, client):
    page.goto("/login?next=/tags/tiny/access")
    log_in(page)
    page.get_by_label("Who").fill("carol")
    page.get_by_label("Role").select_option("manager")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("main")).to_contain_text("Global tags tiny matches 1 of")
    check_accessible(page)
    page.get_by_role("button", name="Add the rule").click()
    row = page.get_by_role("row", name="user carol")
    expect(row).to_contain_text("insert, lock, revert, delete")
    row.get_by_role("link").click()
    expect(page.get_by_role("button", name="Delete the rule")).to_be_visible()
    check_accessible(page)
    page.get_by_role("button", name="Delete the rule").click()
    expect(page.get_by_role("status")).to_contain_text("was deleted")
    expect(row).to_have_count(0)
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name of the program").fill("paged-robot")
    page.get_by_label("Role").select_option("manager")
    page.get_by_role("button", name="Create the token").click()
    text = page.locator(".token").inner_text().strip()
    check_accessible(page)
    assert lock(client, {"Authorization": f"Bearer {text}"}, "unlocked")[0] == 200
    assert page.evaluate("() => sessionStorage.getItem('input')") is None
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_role("row", name="paged-robot")).to_contain_text("valid")
    # Neither Back nor the cache of the browser shows it again.
    page.go_back()
    assert text not in page.content()
    page.get_by_role("link", name="Subscriptions").click()
    page.get_by_label("Receiver").fill("http://127.0.0.1:9/a-long-path/of-a-receiver")
    page.get_by_role("button", name="Create the subscription").click()
    expect(page.locator(".token")).to_contain_text("whsec_")
    check_accessible(page)
    page.get_by_role("link", name="Continue").click()
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("status")).to_contain_text("which is not public")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for path in ("/access", "/tags/tiny/access", "/tokens?all", "/subscriptions", "/login", "/find?q=pixel"):
                page.goto(path)
                check_narrow(page)
                check_accessible(page)
    page.goto("/tags/tiny")
    page.keyboard.press("/")
    page.keyboard.type("pixel_align")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table")).to_contain_text("Pixel_Alignment/tiny/")
    page.goto("/api/docs/")
    expect(page.locator(".opblock-tag").first).to_be_visible()
    color = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    assert color == "rgb(28, 32, 34)", color


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
