"""locust's web UI with our users, in a real browser."""

import contextlib
import re
import subprocess
import time
import urllib.request

import pytest
import requests
from playwright.sync_api import expect

from cdb.env import ROOT
from tests.e2e.conftest import browser  # noqa: F401
from tests.e2e.service import free_port
from tests.e2e.test_metrics import eventually

pytestmark = pytest.mark.xdist_group("load-users")


@pytest.fixture(scope="module")
def address(load_service):
    """The address of the web UI of `make locust` for the service."""
    port = free_port()
    # ARGS may come from the make that runs the tests.
    words = ["locust", f"HOST=http://127.0.0.1:{load_service.port}", f"WEB_PORT={port}", "ARGS="]
    process = subprocess.Popen(["make", *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(found, timeout=5):
            break
        time.sleep(0.1)
    yield found
    process.terminate()
    process.wait(60)


@pytest.fixture
def page(browser, address):  # noqa: F811
    tab = browser.new_page(viewport={"width": 1200, "height": 900})
    tab.goto(address)
    yield tab
    tab.close()


def test_web_ui_starts_shows_and_stops_run(page, address):
    for name in ("Expert", "Indecisive", "Misbehaving", "BelleJob"):
        page.get_by_role("row", name=name).get_by_role("checkbox").uncheck()
    page.get_by_label("Number of users").fill("4")
    page.get_by_label("Ramp up").fill("4")
    page.get_by_text("Custom parameters").click()
    page.get_by_label("Pause (").fill("0.05")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("RUNNING")).to_be_visible()
    for name in ("globalTags", "lookup", "lookup again"):
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=name, exact=True))
        expect(row).to_be_visible()
        expect(row.get_by_role("cell").nth(2)).to_have_text(re.compile(r"^[1-9]\d*$"))
        expect(row.get_by_role("cell").nth(3)).to_have_text("0")
    expect(page.get_by_text(re.compile(r"^Failures\s*0%$")).first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    # The users end their requests first. A page that asks at this moment shows "cleanup", and does not ask again.
    eventually(lambda: requests.get(f"{address}/stats/requests", timeout=20).json()["state"], "stopped", 60)
    page.get_by_role("tab", name="Failures").click()
    expect(page.get_by_role("row")).to_have_count(1)
