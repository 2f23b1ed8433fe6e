"""All pages in a real browser: axe in both themes, narrow, without JavaScript, under their Content-Security-Policy."""

import pytest
from playwright.sync_api import expect

from tests.e2e.clients import check_accessible, check_narrow, fill_preview, loads

PAGES = [
    "/",
    "/?tag=tiny&major=5",
    "/?tag=patch&base=tiny&moments=5,0;2000,0&major=1",
    "/tags",
    "/tags/tiny",
    "/tags/tiny/lists/Pixel_Alignment",
    "/tags/tiny/lists/Pixel_Alignment?since=50,0",
    "/tags/tiny/why?type=Pixel_Alignment&at=5,0",
    "/tags/tiny/history",
    "/tags/tiny/history/1",
    "/tags/tiny/coverage",
    "/tags/patch/coverage?since=0,0&until=3000,0&required=Else",
    "/new",
    "/new?type=Pixel_Alignment",
    "/compare?a=tiny&b=patch",
    "/compare?a=tiny&b=patch&type=Pixel_Alignment",
    "/affected?a=tiny&b=patch",
    "/affected?a=tiny&b=patch&moments=5,0;2000,0",
    "/words",
    "/tags/tiny/compiled",
    "/payloads?value=pixel/v2.root&removed=1",
    "/tags/patch/insert",
    "/tags/patch/manage",
    "/types",
    "/types/Pixel_Alignment",
    "/statuses",
    "/detached",
    "/tags/patch/lists/Pixel_Alignment/delete",
    "/tags/patch/revert/1",
    "/tags/patch/undo/2",
    "/log",
    "/requests",
    "/find?q=pixel",
    "/login",
    "/access",
    "/tags/tiny/access",
    "/tokens",
    "/subscriptions",
    "/nothing",
    "/tags/tinny",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_are_accessible(tab, scheme):
    page = tab(color_scheme=scheme)
    for path in PAGES:
        page.goto(path)
        check_accessible(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_forms_and_timelines_show_is_accessible(tab, scheme):
    page = tab(color_scheme=scheme)
    fill_preview(page)
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    check_accessible(page)
    fill_preview(page, **{"Up to (optional)": "7,0"})
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
    page.goto("/tags/patch/lists/Pixel_Alignment")
    page.get_by_text("Delete", exact=True).first.click()
    page.get_by_role("button", name="Preview the deletion").click()
    expect(page.get_by_label("Before and after")).to_be_visible()
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
    fill_preview(page)
    expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    check_narrow(page)


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
    page.get_by_text("Payload lists as a table").click()
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
    # A part of a page, which htmx asks for.
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
    expect(page.get_by_role("alert")).to_contain_text("The result could not be loaded.")
    expect(page.locator("[aria-busy]")).to_have_count(0)


@pytest.mark.parametrize(
    "name", ["Lookup-get_payload_iovs_query", "Legacy_paths-get_payloadiovs", "Inserting-post_payload_iovs_insert"]
)
def test_an_operation_can_be_tried_out_as_it_is(tab, name):
    page = tab()
    page.goto("/api/docs/")
    operation = page.locator(f"#operations-{name}")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table tbody .response-col_status")).to_contain_text("200")
    expect(operation.locator(".live-responses-table tbody")).to_contain_text("Pixel_Alignment")
