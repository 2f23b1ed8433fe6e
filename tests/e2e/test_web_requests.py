"""Requests in a real browser: proposed by a person without a role, accepted, rejected and withdrawn."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.clients import check_accessible, check_narrow, tabs
from tests.e2e.service import Service

PASSWORD = "correct horse battery"
FILE = "payload_type,payload_url,checksum,since,until\n"
PEOPLE = """
from django.contrib.auth.models import User
for name in ('alice', 'max'):
    User.objects.create_user(name, password='{}')
"""


@pytest.fixture(scope="module")
def closed(new_directory):
    """A service with closed writes: alice has an account, and max manages the tag tiny, which is locked and accepts requests."""
    with Service(new_directory() / "data", CDB_OPEN_WRITES="false").running() as running:
        shell = "from cdb_rest.models import GlobalTag; from cdb_rest.writes.global_tags import change_status\n"
        shell += "change_status(name='tiny', status='locked'); GlobalTag.objects.update(accepts_requests=True)"
        for command in (
            ["shell", "-c", PEOPLE.format(PASSWORD)],
            ["shell", "-c", shell],
            ["grant", "user", "max", "--role", "manager"],
        ):
            done = running.manage(*command)
            assert done.returncode == 0, done.stderr
        yield running


@pytest.fixture
def person(browser, closed):
    with tabs(browser, f"http://127.0.0.1:{closed.port}") as open_tab:

        def log_in(name, **options):
            page = open_tab(**options)
            page.goto("/login")
            page.get_by_label("Name").fill(name)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("link", name="Log out")).to_be_visible()
            return page

        yield log_in


def propose(page, *lines):
    """Propose the rows of a file for the locked tag, and return the path of the request."""
    page.goto("/tags/tiny/insert")
    rows = FILE + "".join(f"{line}\n" for line in lines)
    page.get_by_label("File: CSV or JSON").set_input_files(
        {"name": "r.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    )
    page.get_by_role("button", name="Preview the file").click()
    page.get_by_label("Reason").fill("The survey of May")
    check_accessible(page)
    page.get_by_role("button", name="Propose", exact=True).click()
    expect(page).to_have_url(re.compile(r"/requests/\d+\?new"))
    return page.url.removesuffix("?new")


def test_a_file_is_proposed_for_a_locked_tag_and_accepted(person):
    alice, max_ = person("alice"), person("max", color_scheme="dark")
    path = propose(alice, 'Pixel_Alignment,p/may.root,,"5,0","6,0"')
    expect(alice.locator("#decision")).to_contain_text("You cannot accept it: alice has no permission")
    expect(alice.get_by_role("button", name="Accept")).to_have_count(0)
    alice.get_by_role("form", name="Comment").get_by_label("Comment").fill("Please look at run 5.")
    alice.get_by_role("button", name="Comment").click()
    expect(alice.get_by_text("Please look at run 5.")).to_be_visible()
    max_.goto("/")
    max_.get_by_role("link", name="Requests").click()
    max_.get_by_role("row", name="The survey of May").get_by_role("link").first.click()
    # The preview comes by itself, and is drawn.
    expect(max_.get_by_role("button", name="Accept")).to_be_visible()
    drawn = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte)"
    assert max_.locator("canvas.plan").count() == 2 and max_.evaluate(drawn, max_.query_selector("canvas.plan"))
    check_accessible(max_)
    max_.set_viewport_size({"width": 390, "height": 800})
    check_narrow(max_)
    # The tag changes meanwhile, so that the acceptance shows what it would do now.
    other = propose(alice, 'Pixel_Alignment,p/june.root,,"7,0","8,0"')
    second = person("max")
    second.goto(other)
    second.get_by_role("button", name="Accept").click()
    expect(second.locator("#decision")).to_contain_text("Accepted by")
    max_.get_by_role("button", name="Accept").click()
    expect(max_.get_by_role("alert").first).to_contain_text("has changed since revision")
    expect(max_.get_by_role("heading", name="Changes of the tag since the request")).to_be_visible()
    max_.get_by_role("form", name="Accept").get_by_label("Comment").fill("Thank you")
    max_.get_by_role("button", name="Accept").click()
    expect(max_.locator("#decision")).to_contain_text("Thank you")
    max_.get_by_role("link", name=re.compile("change .* of tiny")).click()
    facts = max_.locator(".facts")
    expect(facts).to_contain_text("max")
    expect(facts.get_by_role("link", name="request 1")).to_be_visible()
    max_.goto("/tags/tiny/history")
    expect(max_.get_by_role("table")).to_contain_text("request 1 by alice")
    expect(max_.locator("h1 .badge")).to_have_count(0)
    # Who comes late sees who has decided.
    alice.goto(path)
    expect(alice.locator("#decision")).to_contain_text("Accepted by")


def test_requests_are_rejected_and_withdrawn(person):
    alice, max_ = person("alice"), person("max")
    first = propose(alice, 'Pixel_Alignment,p/first.root,,"15,0","16,0"')
    second = propose(alice, 'Pixel_Alignment,p/second.root,,"15,0","16,0"')
    max_.goto(first)
    max_.get_by_role("form", name="Reject").get_by_label("Reason").fill("Run 15 is bad")
    max_.get_by_role("button", name="Reject").click()
    expect(max_.locator("#decision")).to_contain_text("Run 15 is bad")
    check_accessible(max_)
    alice.goto(second)
    alice.get_by_role("button", name="Withdraw").click()
    expect(alice.locator("h1")).to_contain_text("withdrawn")
    alice.goto("/requests?state=rejected&tag=tiny&mine=1")
    expect(alice.locator("tbody tr")).to_have_count(1)
    check_accessible(alice)
    alice.set_viewport_size({"width": 390, "height": 800})
    for path in ("/requests?state=", first, second):
        alice.goto(path)
        check_narrow(alice)
