"""Take the pictures of the documentation (docs/*.png) from a new service: `make screenshots`."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import requests
from playwright.sync_api import Browser, Error, Page, sync_playwright

from cdb.env import ROOT
from tests.e2e.service import Service, free_port

DOCS = ROOT / "docs"
WIDTH, LOAD_SECONDS = 1200, 20
PATCH = "2026-patch"
PIXEL = {"global_tag": PATCH, "payload_type": "Pixel_Alignment", "checksum": "9e107d9d372bb6826bd81d3542a419d6"}
INSERTS = (
    {"payload_url": "Pixel_Alignment/2026/survey.root", "since": [40, 0], "until": [90, 0]},
    {"payload_url": "Pixel_Alignment/2026/v2.root", "since": [120, 0], "until": "open"},
)
COMMENTS = ("Alignment after the survey in June", "New constants")
LEFT_OUT = ("Expert", "Indecisive", "Misbehaving")


def main() -> None:
    """Start a service, write a tag with changes, and take all pictures."""
    with (
        tempfile.TemporaryDirectory(prefix="cdb-screenshots-", ignore_cleanup_errors=True) as directory,
        Service(Path(directory) / "data").running() as service,
        sync_playwright() as playwright,
    ):
        requests.post(f"{service.url}cloneGlobalTag/tiny/{PATCH}", timeout=60).raise_for_status()
        for row, comment in zip(INSERTS, COMMENTS, strict=True):
            headers = {"CDB-Comment": comment}
            requests.post(
                f"{service.url}payload-iovs/insert", json=PIXEL | row, headers=headers, timeout=60
            ).raise_for_status()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell"), args=["--no-sandbox"]
        )
        host = f"http://127.0.0.1:{service.port}"
        for name, height, open_page in (
            ("timeline", 740, lambda page: _timeline(page, f"/tags/{PATCH}?against=1&at=100,0")),
            ("payload-list", 700, _dark_list),
            ("change", 760, lambda page: page.goto(f"/tags/{PATCH}/history/2")),
            ("preview", 760, _preview),
        ):
            _take(browser, host, name, height, open_page)
        _take_locust(browser, host)
        browser.close()


def _take(browser: Browser, host: str, name: str, height: int, open_page: Callable[[Page], object]) -> None:
    page = browser.new_page(base_url=host, viewport={"width": WIDTH, "height": height})
    open_page(page)
    page.screenshot(path=DOCS / f"{name}.png")
    page.close()


def _timeline(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".timeline[data-loads='1']", state="attached")


def _dark_list(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Dark theme").click()
    _timeline(page, "/tags/tiny/lists/TransitionRadiation_Alignment")


def _preview(page: Page) -> None:
    page.goto(f"/tags/{PATCH}/insert")
    values = {"Payload type": "Pixel_Alignment", "Payload URL": "Pixel_Alignment/2026/v3.root"}
    for label, text in (values | {"From": "60,0", "Up to (optional)": "100,0"}).items():
        page.get_by_role("form", name="One payload").get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_role("heading", name="Preview").wait_for()


def _take_locust(browser: Browser, host: str) -> None:
    """The form of locust's web UI, and its statistics during a test."""
    port = free_port()
    words = ["make", "locust", f"HOST={host}", f"WEB_PORT={port}", "ARGS="]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        page = browser.new_page(viewport={"width": WIDTH, "height": 860})
        deadline = time.monotonic() + 60
        while not _is_open(page, f"http://127.0.0.1:{port}") and time.monotonic() < deadline:
            time.sleep(0.2)
        page.get_by_text("Custom parameters").click()
        page.get_by_label("Seed (").wait_for()
        page.screenshot(path=DOCS / "locust-form.png", full_page=True)
        for name in LEFT_OUT:
            page.get_by_role("row", name=name).get_by_role("checkbox").uncheck()
        page.get_by_label("Number of users").fill("20")
        page.get_by_label("Ramp up").fill("20")
        page.get_by_label("Pause (").fill("0.2")
        page.get_by_role("button", name="Start").click()
        page.wait_for_timeout(LOAD_SECONDS * 1000)
        page.screenshot(path=DOCS / "locust-statistics.png")
    finally:
        process.terminate()
        process.wait(60)


def _is_open(page: Page, address: str) -> bool:
    try:
        page.goto(address)
    except Error:
        return False
    return True


if __name__ == "__main__":
    main()
