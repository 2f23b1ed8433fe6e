"""What the tests of the web pages in a browser share."""

from contextlib import contextmanager

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect


@contextmanager
def tabs(browser, address):
    """A function that opens a tab. At the end, no script has failed, and nothing was loaded from elsewhere or refused."""
    faults, contexts = [], []

    def open_tab(**options):
        context = browser.new_context(base_url=address, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if "Policy" in message.text else None)
        page.on("request", lambda request: request.url.startswith((address, "data:")) or faults.append(request.url))
        return page

    yield open_tab
    for context in contexts:
        context.close()
    assert faults == []


def check_accessible(page):
    """The page that is shown has no fault that axe finds."""
    found = Axe().run(page)
    assert found.violations_count == 0, (page.url, found.generate_report())


def check_narrow(page):
    """The page that is shown is not wider than the window."""
    # While the page is laid out, it may be wider for a moment.
    page.wait_for_function("() => document.documentElement.scrollWidth <= window.innerWidth")


def loads(page, count):
    """Wait until the lanes of the timeline were loaded so often."""
    expect(page.locator(f".timeline[data-loads='{count}']")).to_have_count(1)


def fill_preview(page, **fields):
    """Fill in the form for an insertion into the tag patch, and ask for the preview."""
    page.goto("/tags/patch/insert")
    values = {"Payload type": "Pixel_Alignment", "Payload URL": "pixel/v4.root", "From": "8,0"}
    values |= {"Up to (optional)": "9,0"} | fields
    for label, text in values.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Preview", exact=True).click()
