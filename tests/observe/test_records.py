"""The log records of requests."""

import os
from datetime import datetime

import pytest

from tests.observe.conftest import LOOKUP, PREFIX


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("method", "url", "status", "queries"),
    [
        ("GET", LOOKUP, 200, 1),
        ("GET", LOOKUP.replace("=tag", "=other"), 404, 2),
        ("GET", PREFIX + "globalTag/tag", 200, None),
        ("POST", PREFIX + "pt", 400, 0),
        ("GET", "/nothing", 404, 0),
    ],
)
def test_a_request_leaves_one_record_and_another_one_for_debugging(ask, build, method, url, status, queries):
    build.tag()
    service, written = ask(CDB_LOG_LEVEL="debug")
    before = datetime.now().astimezone()
    _, _, body = service(method, url, HTTP_X_REQUEST_ID="job-7")
    started, finished = (record for record in written() if record["event"] in ("started", "finished"))
    assert (started["event"], started["level"]) == ("started", "debug")
    assert (finished["event"], finished["level"]) == ("finished", "info")
    for record in (started, finished):
        assert record["request_id"] == "job-7"
        assert record["logger"] == "cdb.request" and record["process"] == os.getpid()
        assert before <= datetime.fromisoformat(record["time"]) <= datetime.now().astimezone()
        assert record["time"].endswith("Z")
        assert record["method"] == method and record["path"] == url.partition("?")[0]
    assert finished["status"] == status and finished["actor"] == "192.0.2.7" and finished["bytes"] == len(body)
    assert 0 <= finished["database_ms"] <= finished["duration_ms"] < 30_000
    assert queries in (None, finished["queries"])
    assert (finished["route"] is None) == (url == "/nothing")


@pytest.mark.django_db(transaction=True)
def test_no_body_header_or_query_is_recorded(ask):
    service, written = ask(CDB_LOG_LEVEL="debug")
    service(
        "POST", PREFIX + "pt?token=swordfish", b'{"name": 1, "password": "swordfish"}', HTTP_AUTHORIZATION="swordfish"
    )
    assert len(written()) >= 2
    assert "swordfish" not in written.text


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["json", "console"])
def test_a_path_can_neither_end_a_line_nor_steer_a_terminal(ask, form):
    service, written = ask(CDB_LOG_FORMAT=form)
    # The last characters are U+007F, U+009B, U+0085, U+2028 and U+2029 in UTF-8.
    more = "\x7f\xc2\x9b\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"
    service("GET", '/x\n{"event": "forged"}\r\x1b[2J\x9b\u0085"' + more)
    assert len(written.text.splitlines()) == 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in written.text.replace("\n", ""))
    if form == "json":
        assert written()[0]["path"].endswith("\x7f\x9b\x85\u2028\u2029")
