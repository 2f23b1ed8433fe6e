"""The timeline in a real browser: with the mouse, with the keyboard, in the past, while lanes are loading."""

import re

from playwright.sync_api import expect

from tests.e2e.clients import loads


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


def test_a_timeline_says_what_the_tag_shares(tab):
    page = tab()
    page.goto("/tags/patch?rev=1")
    expect(page.get_by_label("Timeline", exact=True)).to_contain_text("Shares 10 of 10 payload lists with tiny")
    page.get_by_role("link", name="tiny, revision").last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("tiny")
    loads(page, 1)


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
