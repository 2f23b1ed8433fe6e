"""The web pages of a global tag with 5.2 million IOVs in a real browser: `make test-worst-case` runs them, in ten minutes.

They are not part of `make test-all`, because to write this tag and to read all of it takes minutes.
"""

import re
import time

import pytest
import requests
from playwright.sync_api import expect

from tests.e2e.service import Service
from tests.e2e.web import check_accessible, check_narrow, loads

TAG = "worst-case"
START_SECONDS = 900
# Reading all of the tag.
LONG_MS = 120_000
TYPE = "Pixel_Alignment"
PAGES = [
    "/",
    f"/?tag={TAG}&major=1000",
    "/tags",
    f"/tags/{TAG}",
    f"/tags/{TAG}?since=1000,0&until=1010,0&rev=1",
    f"/tags/{TAG}/lists/{TYPE}",
    f"/tags/{TAG}/lists/{TYPE}?since=5000,0",
    f"/tags/{TAG}/why?type={TYPE}&at=1000,0",
    f"/tags/{TAG}/history",
    f"/tags/{TAG}/history/1",
    f"/tags/{TAG}/coverage?since=1000,0&until=1010,0",
    f"/tags/{TAG}/coverage?type={TYPE}",
    f"/compare?a={TAG}&b=patch",
    f"/compare?a={TAG}&b=patch&type={TYPE}",
    "/payloads?value=patch/1.root",
    "/new",
    f"/tags/{TAG}/insert",
    f"/tags/{TAG}/manage",
    "/tags/patch/revert/1",
]


@pytest.fixture(scope="module")
def web_address(new_directory):
    """The address of a service with the tags worst-case, and patch, a clone with one change."""
    service = Service(new_directory() / "data", SCENARIO="none").start()
    try:
        api = service.url
        done = service.manage("seed_scenario", TAG, seconds=START_SECONDS)
        assert done.returncode == 0, done.stderr
        assert requests.post(f"{api}global-tags/{TAG}/clone/patch", timeout=START_SECONDS).status_code == 200
        row = {"global_tag": "patch", "payload_type": TYPE, "payload_url": "patch/1.root", "checksum": "1"}
        row |= {"since": [5000, 0], "until": [5001, 0]}
        assert requests.post(f"{api}payload-iovs/insert", json=row, timeout=60).status_code == 200
        yield f"http://127.0.0.1:{service.port}"
        assert service.stop() == 0
    finally:
        service.kill_everything()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible_and_fit_on_a_phone(tab, scheme):
    page, narrow = tab(color_scheme=scheme), tab(viewport={"width": 390, "height": 800})
    for path in PAGES:
        for one in (page, narrow):
            one.set_default_timeout(LONG_MS)
            response = one.goto(path)
            assert response.status == 200, path
        check_accessible(page)
        check_narrow(narrow)


def test_lanes_load_as_they_become_visible(tab):
    page = tab()
    asked = []
    page.on("request", lambda request: asked.extend(re.findall(r"type=([^&]*)", request.url)))
    page.goto(f"/tags/{TAG}")
    loads(page, 1)
    assert page.locator(".lane").count() == 200 and 10 < len(asked) < 60
    page.locator(".lane").last.scroll_into_view_if_needed()
    loads(page, 2)
    assert page.locator(".lane").last.get_attribute("data-type") in asked and len(asked) < 120


def test_the_timeline_is_zoomed_to_single_iovs_with_the_keyboard(tab):
    page = tab()
    page.goto(f"/tags/{TAG}")
    loads(page, 1)
    page.locator(".lane canvas").first.focus()
    for _ in range(14):
        before = int(page.locator(".timeline").get_attribute("data-loads"))
        page.keyboard.press("+")
        # A zoom may make more lanes visible, which are then loaded as well.
        page.wait_for_function(
            """before => {
                const timeline = document.querySelector(".timeline");
                return !timeline.hasAttribute("aria-busy") && Number(timeline.dataset.loads) > before;
            }""",
            arg=before,
        )
    expect(page.locator(".window")).to_contain_text("minor of")
    page.keyboard.press("Enter")
    expect(page.locator(".rows tbody tr")).to_have_count(1)


def test_coverage_and_differences_are_there_batch_by_batch(tab):
    page = tab()
    page.goto(f"/tags/{TAG}/coverage")
    first = page.locator("tbody tr").count()
    begin = time.monotonic()
    while page.get_by_text("All 200 payload types are checked").count() == 0:
        page.keyboard.press("End")
        page.wait_for_timeout(200)
        assert time.monotonic() - begin < LONG_MS / 1000
    assert page.locator("tbody tr").count() > first
    page.goto(f"/compare?a={TAG}&b=patch")
    while page.get_by_text("All 200 payload types are compared").count() == 0:
        page.keyboard.press("End")
        page.wait_for_timeout(200)
        assert time.monotonic() - begin < 3 * LONG_MS / 1000
    assert page.locator("tbody a", has_text=TYPE).count() == 1
    page.set_default_timeout(LONG_MS)
    page.get_by_role("link", name="Find the affected intervals").click()
    expect(page.locator(".intervals li")).to_contain_text("5000, 0", timeout=LONG_MS)


def test_a_change_of_all_iovs_shows_the_first_ones(tab):
    page = tab()
    page.goto(f"/tags/{TAG}/history/1")
    expect(page.locator("tbody tr")).to_have_count(200)


def test_everything_but_the_drawing_works_without_javascript(tab):
    page = tab(java_script_enabled=False)
    page.goto(f"/tags/{TAG}/coverage")
    page.get_by_role("link", name="Continue after").click()
    expect(page.locator("tbody")).to_contain_text("of 200 payload types checked")
    page.goto(f"/tags/{TAG}")
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("table").get_by_role("link", name=TYPE, exact=True).click()
    expect(page.locator("tbody tr").first).to_be_visible()


def test_a_preview_in_a_large_tag(tab):
    page = tab()
    page.goto("/tags/patch/insert")
    values = {"Payload type": TYPE, "Payload URL": "patch/2.root", "From": "100,0", "Up to (optional)": "200,0"}
    for label, text in values.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    check_accessible(page)
    page.get_by_role("button", name="Insert 1 payload").click()
    expect(page.locator("main")).to_contain_text("patch/2.root")
