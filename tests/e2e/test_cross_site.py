"""A page of another site, in a real browser, that tries to write to the service on this machine."""

import http.server
import json
import threading

import pytest

from tests.e2e.service import JobClient

ROW = {
    "global_tag": "tiny",
    "payload_type": "Pixel_Alignment",
    "payload_url": "evil.root",
    "checksum": "0",
    "since": [1, 0],
    "until": "open",
}
# A body that has no type needs no permission to be sent elsewhere.
ATTACK = """async ([url, body]) => {
    await fetch(url, {method: "POST", mode: "no-cors", body: body === null ? undefined : new Blob([body])});
}"""


@pytest.fixture
def evil_page():
    """The address of a page of another program on this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>harmless</title>")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("shape", ["service", "served"])
def test_no_page_of_another_site_writes(request, shape, browser, evil_page):
    service = request.getfixturevalue(shape)
    client = JobClient(service.port)
    before = client.get("global-tags/tiny/changes"), client.get("globalTags")
    page = browser.new_page()
    page.goto(evil_page)
    statuses = []
    page.on("response", lambda response: statuses.append(response.status))
    page.evaluate(ATTACK, [f"{service.url}payload-iovs/insert", json.dumps(ROW)])
    page.evaluate(ATTACK, [f"{service.url}cloneGlobalTag/tiny/evil", None])
    assert statuses == [403, 403]
    assert (client.get("global-tags/tiny/changes"), client.get("globalTags")) == before
    # From a page of its own the same is a write like any other.
    page.goto(f"http://127.0.0.1:{service.port}/")
    page.evaluate(ATTACK, [f"{service.url}payload-iovs/insert?dry_run=1", json.dumps(ROW)])
    assert statuses[-1] == 200
    page.close()
