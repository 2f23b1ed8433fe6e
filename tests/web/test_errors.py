"""Errors: pages for browsers, JSON for other clients."""

import re
from html import unescape

import pytest

from tests.conftest import ServiceClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/tags/none", 404, "There is no global tag 'none'."),
        ("/tags/tga", 404, "There is no global tag 'tga'; did you mean 'tag'?"),
        ("/tags/tag/lists/gian", 404, "There is no payload type 'gian'; did you mean 'Gain'?"),
        ("/compare?a=tag&b=tagg", 404, "There is no global tag 'tagg'; did you mean 'tag'?"),
        ("/tags/tag/lists/none", 404, "There is no payload type 'none'."),
        ("/tags/tag/history/99", 404, "There is no change"),
        ("/tags/tag?rev=99", 404, "There is no revision 99"),
        (
            "/tags/tag?since=5,x",
            400,
            "From must be major,minor, two integers from 0 to 9223372036854775807 (got '5,x')",
        ),
        ("/tags/tag/rows?type=Gain&x=-1", 400, "x must be a number"),
        ("/tags/tag/lanes?width=100000", 400, "width must be a number"),
        ("/tags/tag/lanes?left=nan", 400, "left must be a number"),
        ("/?tag=tag&major=x", 400, "Major must be"),
        ("/compare?a=none&b=tag", 404, "There is no global tag 'none'."),
        ("/compare?tag=a&tag=b&tag=c", 400, "Choose two tags or two revisions (got 3)"),
        ("/compare?a=tag&rev=1&rev=2&rev=3", 400, "Choose two tags or two revisions (got 3)"),
        ("/tags/tag/coverage?since=1,2,3", 400, "From must be major,minor"),
        ("/tags/tag/lists/Gain?since=1,2,3", 400, "From must be major,minor"),
        ("/tags/tag/lists/Gain?rev=99", 404, "There is no revision 99"),
        ("/nothing", 404, "There is nothing at '/nothing'."),
        ("/tags/~00", 404, "There is nothing at '/tags/~00'."),
    ],
)
def test_errors_are_pages(browser, tag, path, status, text):
    assert text in unescape(browser.get(path, status))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/?tag=typing+error&major=5", "typing error"),
        ("/compare?a=tag&b=typing+error", "typing error"),
        ("/tags/tag/coverage?until=9,9,9", "9,9,9"),
        ("/tags/tag?at=1&since=x,y", "x,y"),
        ("/tags/tag?rev=77", "77"),
        ("/tags/tag/lists/Gain?since=x,y", "x,y"),
    ],
)
def test_a_form_with_an_error_keeps_what_was_typed(browser, tag, path, value):
    text = browser.get(path, 404 if "typing" in path or "rev=" in path else 400)
    assert f'value="{value}"' in text and 'role="alert"' in text and "<form" in text


def test_requests_that_are_refused_before_any_view_have_pages(browser, tag, settings):
    assert "NUL byte" in browser.get("/tags/tag?rev=%00", 400)
    clearing = {"kind": "clear", "payload_type": "a\0b", "since": "1", "until": "2"}
    client = ServiceClient(headers={"Accept": "text/html"})
    assert "character NUL" in client.post("/tags/tag/insert", clearing).content.decode()
    settings.CDB_MAX_BODY_BYTES = 2000
    response = client.post("/tags/tag/insert", {"comment": "x" * 3000})
    assert response.status_code == 413 and "at most 2000 bytes" in response.content.decode()
    assert response.content.decode().startswith("<!DOCTYPE html>")
    response = client.get("/tags", headers={"Host": "elsewhere.example.org"})
    assert response.status_code == 400 and "not one of this service" in response.content.decode()
    response = client.post("/tags")
    assert response.status_code == 405 and "</html>" in response.content.decode() and "GET" in response["Allow"]
    response = client.post("/tags/tag/insert", headers={"Sec-Fetch-Site": "cross-site", "Origin": "http://other"})
    assert response.status_code == 403 and "</html>" in response.content.decode()


def test_a_fault_of_ours_is_a_page_without_details(browser, tag, monkeypatch):
    monkeypatch.setattr("cdb_web.views.tags.timeline_values", lambda *_: 1 / 0)
    text = browser.get("/tags/tag", 500)
    assert "it was logged" in text and not re.search("division|Traceback", text)
