"""The list of global tags in a real browser: filters while one types, and the choice of two tags to compare."""

import re

from playwright.sync_api import expect


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
