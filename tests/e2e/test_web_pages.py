"""The web pages in a real browser: with the mouse, with the keyboard, without JavaScript, narrow, in both themes."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from playwright.sync_api import expect

from tests.e2e.web import check_accessible, check_narrow, loads, tabs

PAGES = [
    "/",
    "/?tag=tiny&major=5",
    "/tags",
    "/tags/tiny",
    "/tags/tiny/lists/Pixel_Alignment",
    "/tags/tiny/why?type=Pixel_Alignment&at=5,0",
    "/tags/tiny/history",
    "/tags/tiny/history/1",
    "/tags/tiny/coverage",
    "/tags/patch/coverage?since=0,0&until=3000,0&required=Else",
    "/new",
    "/new?type=Pixel_Alignment",
    "/compare?a=tiny&b=patch",
    "/compare?a=tiny&b=patch&type=Pixel_Alignment",
    "/payloads?value=pixel/v2.root&removed=1",
    "/tags/patch/insert",
    "/tags/patch/manage",
    "/tags/patch/revert/1",
    "/nothing",
]


@pytest.fixture(scope="module")
def filled(service):
    """The address of a service with the tags tiny, and patch, a copy with a change."""
    api = f"http://127.0.0.1:{service.port}/api/cdb_rest/"
    assert requests.post(f"{api}global-tags/tiny/clone/patch", timeout=20).status_code == 200
    row = {"global_tag": "patch", "payload_type": "Pixel_Alignment", "payload_url": "pixel/v2.root", "checksum": "1"}
    row |= {"since": [5, 0], "until": [6, 0]}
    assert requests.post(f"{api}payload-iovs/insert", json=row, timeout=20).status_code == 200
    yield f"http://127.0.0.1:{service.port}"
    assert requests.delete(f"{api}deleteGlobalTag/patch", timeout=20).status_code == 200


@pytest.fixture
def tab(browser, filled):
    with tabs(browser, filled) as open_tab:
        yield open_tab


def preview(page, **fields):
    """Fill in the form for an insertion into the tag patch, and ask for the preview."""
    page.goto("/tags/patch/insert")
    values = {"Payload type": "Pixel_Alignment", "Payload URL": "pixel/v4.root", "From": "8,0"}
    values |= {"Up to (optional)": "9,0"} | fields
    for label, text in values.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Preview", exact=True).click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible(tab, scheme):
    page = tab(color_scheme=scheme)
    for path in PAGES:
        page.goto(path)
        check_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_forms_and_timelines_show_is_accessible(tab, scheme):
    page = tab(color_scheme=scheme)
    preview(page)
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    check_accessible(page)
    preview(page, **{"Up to (optional)": "7,0"})
    expect(page.get_by_role("alert")).to_be_visible()
    check_accessible(page)
    page.get_by_label("File: CSV or JSON").set_input_files(
        {"name": "rows.json", "mimeType": "application/json", "buffer": b'[{"since": 1}, {"until": [1]}]'}
    )
    page.get_by_role("button", name="Preview the file").click()
    expect(page.get_by_role("alert")).to_contain_text("What is wrong")
    check_accessible(page)
    page.goto("/tags/patch/revert/1")
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.get_by_label("to confirm")).to_be_visible()
    check_accessible(page)
    page.goto("/tags/patch?against=1&at=5,500")
    loads(page, 1)
    page.locator(".lane canvas").first.click(position={"x": 50, "y": 10})
    expect(page.locator(".rows")).to_contain_text("Cherenkov_Alignment/tiny/")
    page.get_by_text("Copy as a command").click()
    check_accessible(page)


def test_no_page_is_wider_than_a_phone(tab):
    page = tab(viewport={"width": 390, "height": 800})
    for path in PAGES:
        page.goto(path)
        check_narrow(page)
    preview(page)
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    check_narrow(page)


def pixels(page, lane=0):
    """The number of different colors that a lane has."""
    return page.evaluate(
        """(number) => {
            const canvas = document.querySelectorAll(".lane canvas")[number];
            const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            return new Set(data).size;
        }""",
        lane,
    )


def test_a_timeline_is_drawn_and_zoomed_with_the_mouse(tab):
    page = tab()
    page.goto("/tags/tiny")
    loads(page, 1)
    assert pixels(page) > 2
    whole = page.locator(".window").inner_text()
    page.get_by_role("button", name="Zoom in").click()
    loads(page, 2)
    # The Back button of the browser zooms out.
    page.go_back()
    loads(page, 1)
    assert page.locator(".window").inner_text() == whole
    page.get_by_role("button", name="Zoom in").click()
    loads(page, 2)
    zoomed = page.locator(".window").inner_text()
    assert zoomed != whole and "since=" in page.url
    # The address shows the same.
    page.reload()
    loads(page, 1)
    assert page.locator(".window").inner_text() == zoomed
    canvas = page.locator(".lane canvas").first
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 10)
    page.mouse.up()
    loads(page, 2)
    assert page.locator(".window").inner_text() != zoomed
    canvas.click(position={"x": 50, "y": 10})
    expect(page.locator(".rows")).to_contain_text("Cherenkov_Alignment/tiny/")


def test_a_timeline_shows_a_past_revision_and_what_differs(tab):
    page = tab()
    page.goto("/tags/patch?against=1&at=5,500")
    loads(page, 1)
    lane = [lane.get_attribute("data-type") for lane in page.locator(".lane").all()].index("Pixel_Alignment")
    colors = pixels(page, lane)
    assert colors > pixels(page, lane + 1)
    page.get_by_role("slider", name="Revision").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("rev=1"))
    loads(page, 1)
    expect(page.get_by_role("slider", name="Revision")).to_be_focused()
    assert pixels(page, lane) < colors


def test_a_timeline_is_used_with_the_keyboard(tab):
    page = tab()
    page.goto("/tags/tiny")
    loads(page, 1)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.locator(".lane canvas").first.focus()
    page.keyboard.press("+")
    loads(page, 2)
    page.keyboard.press("ArrowLeft")
    loads(page, 3)
    page.keyboard.press("Enter")
    expect(page.locator(".rows")).to_contain_text("Cherenkov_Alignment/tiny/")


def test_lanes_that_become_visible_during_a_zoom_have_its_window(tab):
    # So low that the last lane is not yet visible.
    page = tab(viewport={"width": 390, "height": 100})
    page.goto("/tags/tiny")
    page.locator(".lane canvas").first.focus()
    loads(page, 1)
    held, asked, released = [], [], []
    page.on("request", lambda request: "/lanes?" in request.url and asked.append(parse_qs(urlsplit(request.url).query)))
    page.route("**/lanes?*left=*", lambda route: route.continue_() if released else held.append(route))
    with page.expect_request(lambda request: "left=" in request.url):
        page.keyboard.press("+")
    page.locator(".lane").last.scroll_into_view_if_needed()
    # Another observer has seen the lane, so that of the timeline has, too.
    page.evaluate(
        """() => new Promise((done) => {
            const seen = new IntersectionObserver((entries) => entries[0].isIntersecting && done(), { rootMargin: "200px" });
            seen.observe([...document.querySelectorAll(".lane")].at(-1));
        })"""
    )
    # No lane was asked for with the former window.
    assert held and all("left" in one for one in asked)
    released.append(True)
    for route in held:
        route.continue_()
    loads(page, 3)
    last = page.locator(".lane").last.get_attribute("data-type")
    shown = parse_qs(urlsplit(page.url).query)
    assert last in asked[-1]["type"] and [asked[-1][name] for name in ("since", "until")] == [
        shown[name] for name in ("since", "until")
    ]


def test_tags_are_filtered_while_one_types_and_compared(tab):
    page = tab()
    page.goto("/tags")
    field = page.get_by_label("Name, author or description")
    field.press_sequentially("pat")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("q=pat"))
    # The table stays as it is when the field loses the focus.
    page.get_by_label("Compare patch", exact=True).check()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_label("Compare patch", exact=True)).to_be_checked()
    # The Back button leads to a whole page.
    field.press("End")
    field.press_sequentially("ch")
    expect(page).to_have_url(re.compile("q=patch"))
    page.go_back()
    expect(field).to_have_value("pat")
    field.fill("")
    expect(page).not_to_have_url(re.compile("q=pat"))
    # Other tests use the same service, so there may be more tags.
    for name in ("tiny", "patch"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.get_by_role("button", name="Compare the two").click()
    expect(page.locator("main")).to_contain_text("1 difference in 1 payload type")
    page.get_by_role("link", name="Pixel_Alignment").click()
    expect(page.locator("main")).to_contain_text("pixel/v2.root")


def test_a_payload_is_inserted_after_a_preview(tab):
    page = tab()
    preview(page)
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    page.get_by_role("button", name="Insert 1 payload").click()
    expect(page.locator("main")).to_contain_text("pixel/v4.root")
    expect(page.get_by_role("status")).to_contain_text("This change was stored.")
    # It is the newest change.
    expect(page.get_by_role("link", name="Revert to it")).to_have_count(0)


def test_the_theme_is_chosen_and_kept(tab):
    page = tab(color_scheme="light")
    page.goto("/")
    color = "() => getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(color)
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(color) != light
    page.goto("/tags")
    assert page.evaluate(color) != light


def test_everything_but_the_drawing_works_without_javascript(tab):
    page = tab(java_script_enabled=False)
    page.goto("/")
    page.get_by_label("Global tag").fill("tiny")
    page.get_by_label("Major").fill("5")
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("main")).to_contain_text("Pixel_Alignment/tiny/")
    page.goto("/tags/tiny")
    page.get_by_role("button", name="Zoom in").click()
    assert "left=0.25" in page.url
    page.get_by_role("table").get_by_role("link", name="Pixel_Alignment").click()
    expect(page.locator("tbody tr").first).to_contain_text("1, 0")
    page.goto("/tags")
    page.get_by_label("Name, author or description").fill("pat")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_what_fails_to_load_is_said(tab):
    page = tab()
    page.goto("/tags/tiny")
    loads(page, 1)
    page.route("**/lanes?*", lambda route: route.fulfill(status=504, json={"detail": "It took too long."}))
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator(".rows")).to_contain_text("could not be loaded: It took too long.")
    page.route("**/lanes?*", lambda route: route.abort())
    page.get_by_role("button", name="Zoom in").press(" ")
    expect(page.locator(".rows")).to_contain_text("could not be loaded: Failed to fetch")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    # The next batch of a table, which htmx asks for.
    page.goto("/tags/tiny/coverage")
    page.route("**/coverage?after=*", lambda route: route.fulfill(status=504, json={"detail": "It took too long."}))
    page.evaluate(
        """() => {
            const row = document.createElement("tr");
            row.setAttribute("hx-get", "?after=A");
            row.setAttribute("hx-trigger", "load");
            row.innerHTML = '<td><span aria-busy="true">1 of 2</span> <a href="?after=A">Continue</a></td>';
            document.querySelector("tbody").append(row);
            htmx.process(row);
        }"""
    )
    expect(page.get_by_role("alert")).to_contain_text("The rest could not be loaded.")
    expect(page.locator("[aria-busy]")).to_have_count(0)


def test_the_pages_of_an_empty_database(browser, fresh):
    served = fresh(SCENARIO="none").start()
    with tabs(browser, f"http://127.0.0.1:{served.port}") as open_tab:
        for scheme in ("light", "dark"):
            page = open_tab(color_scheme=scheme)
            for path in ("/", "/tags", "/new", "/compare", "/payloads", "/payloads?value=none", "/tags/none"):
                page.goto(path)
                check_accessible(page)
        page.goto("/")
        page.get_by_role("link", name="Create one.").click()
        page.get_by_label("Name of the payload type").fill("Gain")
        page.get_by_role("button", name="Create the payload type").click()
        expect(page.get_by_role("status")).to_contain_text("payload type Gain")
        page.get_by_label("Name of the tag").fill("first")
        page.get_by_role("button", name="Create the tag").click()
        for label, text in (("Payload type", "Gain"), ("Payload URL", "gain/1"), ("From", "1,0")):
            page.get_by_label(label, exact=True).fill(text)
        page.get_by_role("button", name="Preview", exact=True).click()
        page.get_by_role("button", name="Insert 1 payload").click()
        expect(page.locator("main")).to_contain_text("gain/1")


def test_a_person_who_has_logged_in_inserts_behind_nginx(browser, fresh, needs_packages):
    """Writes are closed, so the form needs the session. The file is a form of several parts."""
    served = fresh(command="serve", CDB_OPEN_WRITES="", CDB_WORKERS="2").start()
    served.environment |= {"DJANGO_SUPERUSER_PASSWORD": "correct horse battery"}
    served.manage("createsuperuser", "--noinput", "--username", "calibrator", "--email", "calibrator@example.org")
    context = browser.new_context(base_url=f"http://127.0.0.1:{served.port}")
    page = context.new_page()
    page.goto("/tags/tiny/manage")
    page.get_by_label("Name of the copy").fill("web-copy")
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_role("alert")).to_contain_text("needs the role")
    page.get_by_role("link", name="Log in").click()
    page.fill("#id_username", "calibrator")
    page.fill("#id_password", "correct horse battery")
    page.click("input[type=submit]")
    expect(page.locator("header")).to_contain_text("calibrator")
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
    expect(page.locator(".facts")).to_contain_text("calibrator")
    check_accessible(page)
    page.get_by_role("link", name="Log out").click()
    check_accessible(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("link", name="Log in")).to_be_visible()
    context.close()
