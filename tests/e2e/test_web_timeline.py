"""The timeline in a real browser: with the mouse, with the keyboard, in the past, while lanes are loading."""

import re

import pytest
import requests
from playwright.sync_api import expect

from tests.e2e.clients import check_accessible, check_narrow, loads


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
    loads(page, 3)
    assert page.locator(".window").inner_text() == whole
    page.get_by_role("button", name="Zoom in").click()
    loads(page, 4)
    zoomed = page.locator(".window").inner_text()
    assert zoomed != whole and "since=" in page.url
    # The address shows the same.
    page.reload()
    loads(page, 1)
    assert page.locator(".window").inner_text() == zoomed
    canvas = page.locator(".lane canvas").first
    drag(page, canvas, 100, 200, shift=True)
    loads(page, 2)
    part = page.locator(".window").inner_text()
    assert part != zoomed
    # The form and the address agree with the drawing.
    drag(page, canvas, 200, 100)
    loads(page, 3)
    assert page.locator(".window").inner_text() != part
    since = page.get_by_label("From", exact=True).input_value()
    assert page.locator(".window").inner_text().startswith(since.replace(",", ", "))
    assert f"since={since.replace(',', '%2C')}" in page.url
    page.keyboard.down("Control")
    canvas.hover(position={"x": 50, "y": 10})
    page.mouse.wheel(0, 300)
    page.keyboard.up("Control")
    loads(page, 4)
    canvas.click(position={"x": 50, "y": 10})
    expect(page.locator(".rows")).to_contain_text("Cherenkov_Alignment")


def drag(page, canvas, begin, end, *, shift=False):
    """Drag on a lane from one pixel to another."""
    box = canvas.bounding_box()
    if shift:
        page.keyboard.down("Shift")
    page.mouse.move(box["x"] + begin, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + end, box["y"] + 10, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")


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
    # All lanes are one stop.
    assert page.locator(".lanes").locator("a, button, [tabindex]").evaluate_all(STOPS) == 1
    place = page.locator(".lane .place")
    place.first.focus()
    for key, focused in (("ArrowDown", 1), ("End", 9), ("ArrowUp", 8), ("Home", 0), ("PageDown", 9), ("PageUp", 0)):
        page.keyboard.press(key)
        expect(place.nth(focused)).to_be_focused()
    page.keyboard.press("+")
    loads(page, 2)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".rows")).to_contain_text("Cherenkov_Alignment/tiny/")
    first = page.locator(".rows h2").inner_text()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".rows h2")).not_to_have_text(first)
    page.keyboard.press("Enter")
    expect(page.locator(".rows")).to_be_focused()
    page.keyboard.press("Escape")
    expect(place.first).to_be_focused()


STOPS = "(elements) => elements.filter((element) => element.tabIndex >= 0 && element.checkVisibility()).length"
# Where the strip for gaps of each lane that is drawn has the color of gaps, and no other pixel has it: a 1 for each pixel.
STRIPS = """() => {
    const sample = document.createElement("canvas").getContext("2d");
    sample.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--lane-gap");
    sample.fillRect(0, 0, 1, 1);
    const color = sample.getImageData(0, 0, 1, 1).data.join();
    return Object.fromEntries([...document.querySelectorAll(".lane[data-type]:not([hidden])")].map((lane) => {
        const canvas = lane.querySelector("canvas");
        const data = canvas.getContext("2d").getImageData(0, 19, canvas.width, 1).data;
        const strip = Array.from({ length: canvas.width }, (_, x) => Number(data.slice(4 * x, 4 * x + 4).join() === color));
        return [lane.dataset.type, strip.join("")];
    }));
}"""
FAR = 2**63 - 2


@pytest.fixture(scope="module")
def many(service):
    """The name of a tag with 100 payload types in 20 groups, of which one has an IOV far from the others."""
    assert service.manage("seed_scenario", "moderate", "--global-tag", "many").returncode == 0
    api = f"http://127.0.0.1:{service.port}/api/cdb_rest/"
    row = {
        "global_tag": "many",
        "payload_type": "Beam_Gain",
        "payload_url": "far.root",
        "checksum": "1",
        "since": [FAR, 0],
    }
    row["until"] = "open"
    assert requests.post(f"{api}payload-iovs/insert", json=row, timeout=20).status_code == 200
    yield "many"
    assert requests.delete(f"{api}deleteGlobalTag/many", timeout=60).status_code == 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_gap_is_painted_over(tab, many, scheme):
    page = tab(color_scheme=scheme)
    responses = []
    page.on("response", lambda response: responses.append(response) if "/lanes?" in response.url else None)
    page.goto(f"/tags/{many}?lanes=Beam")
    loads(page, 1)
    lanes = {name: lane["states"] for response in responses for name, lane in response.json()["lanes"].items()}
    expected = {name: "".join("01"[state in "gp"] for state in states) for name, states in lanes.items()}
    assert page.evaluate(STRIPS) == expected
    assert len(expected) == 5 and any("p" in states for states in lanes.values())


def test_a_far_start_is_named_and_followed(tab, many):
    page = tab()
    page.goto(f"/tags/{many}")
    loads(page, 1)
    # The other IOVs fill the axis.
    assert int(page.locator("[data-until]").get_attribute("data-until").split(",")[0]) < 1_000_000
    expect(page.locator(".beyond")).to_contain_text("1 IOV beyond")
    page.locator(".beyond a").click()
    expect(page.locator(".rows")).to_contain_text("far.root")
    assert f"to {FAR}" in page.locator(".window").inner_text()
    page.get_by_role("button", name="Everything").click()
    loads(page, 2)
    assert f"to {FAR}" not in page.locator(".window").inner_text()


def test_many_lanes_are_filtered_and_folded(tab, many):
    page = tab()
    page.goto(f"/tags/{many}")
    shown = page.locator(".lane[data-type]:not([hidden])")
    expect(shown).to_have_count(100)
    page.get_by_label("Only lanes with this in the name").fill("ped")
    expect(shown).to_have_count(20)
    page.get_by_role("button", name="Fold all").click()
    expect(shown).to_have_count(0)
    page.get_by_role("button", name="Beam (1)").click()
    expect(shown).to_have_count(1)
    canvas = shown.locator("canvas")
    expect(page.locator(".timeline[aria-busy]")).to_have_count(0)
    canvas.click(position={"x": 100, "y": 10})
    expect(page.locator(".rows")).to_contain_text("Beam_Pedestal")
    expect(page).to_have_url(re.compile("select=Beam_Pedestal"))
    page.get_by_role("button", name="Zoom in").click()
    expect(page).to_have_url(re.compile("since="))
    window = page.locator(".window").inner_text()
    at = page.get_by_label("Mark the moment").input_value()
    # The other pages of the tag lead back to the same view.
    page.get_by_role("navigation", name="Global tag").get_by_role("link", name="History").click()
    page.get_by_role("navigation", name="Global tag").get_by_role("link", name="Timeline").click()
    expect(shown).to_have_count(1)
    expect(page.locator(".window")).to_have_text(window)
    expect(page.get_by_label("Mark the moment")).to_have_value(at)
    page.goto(f"/tags/{many}?lanes=Beam&gaps=1&changed=1")
    # Since the first revision, only the list with the far IOV has changed, and it has gaps.
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("Beam_Gain")


def test_the_iovs_of_a_place_are_in_sight(tab, many):
    page = tab(viewport={"width": 390, "height": 800}, has_touch=True)
    page.goto(f"/tags/{many}")
    loads(page, 1)
    expect(page.locator(".lane canvas:visible").nth(3)).to_be_in_viewport()
    lane = page.locator(".lane[data-type=Muon_Gain]")
    lane.evaluate("(lane) => lane.scrollIntoView({ block: 'center' })")
    expect(page.locator(".axis")).to_be_in_viewport()
    before = page.evaluate("scrollY")
    lane.locator("canvas").click(position={"x": 50, "y": 10})
    expect(page.locator(".rows")).to_contain_text("Muon_Gain")
    expect(page.locator(".rows h2")).to_be_in_viewport()
    expect(lane).to_be_in_viewport()
    assert page.evaluate("scrollY") == before
    check_accessible(page)
    check_narrow(page)
    # Two fingers zoom.
    box = lane.locator("canvas").bounding_box()
    fingers = page.context.new_cdp_session(page)
    for kind, places in (("Start", (100, 130)), ("Move", (80, 150)), ("Move", (50, 180)), ("End", ())):
        points = [{"x": box["x"] + x, "y": box["y"] + 10, "id": number} for number, x in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    expect(page).to_have_url(re.compile("since="))
