"""Clients of services in tests: raw requests, cookies, lines of the access log, and tabs of a browser."""

import http.client
import json
import re
from contextlib import contextmanager
from urllib.parse import urlencode

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.waiting import wait_until

BYTES_PREFIX = b"/api/cdb_rest/"


def request(method, path, headers=b"", body=b""):
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"%s %s%s HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n%s" % (method, BYTES_PREFIX, path, headers, length, body)


class Browser:
    """Keeps cookies, as a browser does, and follows no redirects."""

    def __init__(self, port, secure=None, host="localhost"):
        self.port, self.secure, self.host = port, secure, host
        self.cookies = {}
        self.set = []

    def __call__(self, method, path, form=None, **headers):
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind("127.0.0.1", self.port, timeout=60, **({"context": self.secure} if self.secure else {}))
        headers["Host"] = f"{self.host}:{self.port}"
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, urlencode(form) if form is not None else None, headers)
        response = connection.getresponse()
        self.set = response.headers.get_all("Set-Cookie") or []
        for cookie in self.set:
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def log_in(self, password, path="/admin/login/", **headers):
        _, _, page = self("GET", path)
        token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page)[1].decode()
        form = {"username": "operator", "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"}
        return self("POST", path, form, **headers)


PREFIX = "/api/cdb_rest/"


class AccessLog:
    """The lines of nginx's access log, by request id."""

    def __init__(self, service):
        self._path = service.data / "serve" / "access.log"

    def _entries(self, request_ids):
        """The lines about these requests, by their ids. They are written a second later."""
        found = {}

        def has_all():
            entries = [json.loads(line) for line in self._path.read_text(errors="backslashreplace").splitlines()]
            found.update({entry["request_id"]: entry for entry in entries if entry["request_id"] in request_ids})
            return len(found) == len(request_ids)

        wait_until(has_all)
        return found

    def __getitem__(self, request_id):
        return self._entries({request_id})[request_id]

    def pools(self, request_ids):
        """Which pool got each of these requests; nginx's processes write their lines each for itself."""
        return {key: entry["pool"] for key, entry in self._entries(request_ids).items()}


def ask(service, method, target, **headers):
    """Status, headers, parsed body of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request(method, target, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, json.loads(body) if body else None


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


# Whether a canvas has pixels that are not blank.
DRAWN = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte)"


def check_accessible(page):
    """The page that is shown has no fault that axe finds."""
    # After a click, the address is already that of a page whose content has not arrived.
    page.wait_for_load_state()
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
        page.get_by_role("form", name="One payload").get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Preview", exact=True).click()
