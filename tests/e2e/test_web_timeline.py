"""The timeline in a real browser: with the mouse, with the keyboard, in the past, while lanes are loading."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.e2e.web import loads


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
    page.goto("/tags/patch")
    # Other tests may have changed the tag.
    before = int(page.get_by_role("slider", name="Revision").get_attribute("max")) - 1
    page.goto(f"/tags/patch?against={before}&at=5,500")
    loads(page, 1)
    lane = [lane.get_attribute("data-type") for lane in page.locator(".lane").all()].index("Pixel_Alignment")
    colors = pixels(page, lane)
    assert colors > pixels(page, lane + 1)
    page.get_by_role("slider", name="Revision").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile(f"rev={before}"))
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
