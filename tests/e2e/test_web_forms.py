"""Forms in a real browser: the list of global tags with its filters, and a file that is corrected, checked and inserted."""

import re

from playwright.sync_api import expect

from tests.e2e.clients import DRAWN, check_accessible, check_narrow


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


def test_a_file_is_corrected_checked_and_inserted(tab):
    page = tab()
    # Other tests need the tag as it is.
    assert page.request.post("/api/cdb_rest/global-tags/patch/clone/many").ok
    page.goto("/tags/many/insert")
    starts = (start for start in range(20_000, 29_999) if start != 25_000)
    lines = [
        "payload_type,payload_url,checksum,since,until",
        *(f"Pixel_Alignment,p/{start}.root,,{start}," for start in starts),
    ]
    # The IOV from 5,0 up to 6,0 will be valid nowhere.
    lines += ["Pixel_Alignment,p/wipe.root,,4,1e1", ""]
    # Dropped, as a person does with the file manager.
    page.locator(".drop").evaluate(
        """(drop, text) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], "rows.csv"));
            drop.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        "\n".join(lines),
    )
    expect(page.get_by_role("alert")).to_contain_text("until must be written with digits only: 10")
    check_accessible(page)
    # Only this line is edited, and the others stay.
    page.get_by_label("Line 10000").fill("Pixel_Alignment,p/wipe.root,,4,10")
    page.get_by_role("button", name="Preview the corrected rows").click()
    warnings = page.get_by_role("alert")
    expect(warnings).to_contain_text("Existing IOVs that will be valid nowhere: 1")
    expect(warnings.locator("[data-kind=removed]")).to_contain_text("Line 10000")
    page.get_by_label("Only problems").check()
    shown = page.locator(".rows-of-file tbody tr:visible")
    expect(shown.filter(has_text="p/wipe.root")).to_be_visible()
    expect(shown.filter(has_not=page.locator(".badge"))).to_have_count(0)
    # The lanes are drawn.
    assert [page.evaluate(DRAWN, canvas) for canvas in page.query_selector_all("canvas.plan")] == [True, True]
    check_accessible(page)
    # The browser asks for the box.
    insert = page.get_by_role("button", name="Insert the rows")
    insert.click()
    expect(page.get_by_label("I have checked this")).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 800})
    check_narrow(page)
    page.get_by_label("I have checked this").check()
    insert.click()
    expect(page).to_have_url(re.compile(r"/tags/many/history/\d+\?new"))
    expect(page.locator("main")).to_contain_text("This change was stored.")
