"""The log records of requests: their fields, two for each request, and errors while writing them fail no request."""

import json
import logging
import logging.config
import os
from datetime import datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.observe.conftest import LOOKUP, PREFIX


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("method", "url", "status", "queries"),
    [
        ("GET", LOOKUP, 200, 1),
        ("GET", LOOKUP.replace("=tag", "=other"), 404, 1),
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
def test_the_statements_of_a_stream_are_counted_too(ask, build):
    build.iov(build.list(build.tag()), (1, 0))
    service, written = ask()
    service("GET", PREFIX + "gt")
    [finished] = written(event="finished")
    assert finished["queries"] >= 3 and finished["bytes"] > 100


@pytest.mark.django_db(transaction=True)
def test_an_exception_that_only_django_sees_is_recorded_with_its_traceback(ask, monkeypatch):
    def breaks(*_):
        secret = "swordfish"
        raise RuntimeError(len(secret))

    monkeypatch.setattr("django.contrib.admin.sites.AdminSite.each_context", breaks)
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    service, written = ask()
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    status, _, body = service("GET", "/admin/", HTTP_X_REQUEST_ID="job-7", HTTP_COOKIE=cookie)
    assert status == 500 and json.loads(body)["code"] == "internal_error"
    assert [record["event"] for record in written(request_id="job-7")] == [
        "Internal Server Error: /admin/",
        "finished",
    ]
    [failed] = written(event="Internal Server Error: /admin/")
    assert failed["level"] == "error"
    assert failed["exception"].splitlines()[-1] == "RuntimeError: 9" and ", in breaks" in failed["exception"]
    assert written(event="finished", level="error", status=500, actor="operator")
    assert "swordfish" not in written.text and cookie not in written.text


@pytest.mark.django_db(transaction=True)
def test_an_exception_in_a_view_is_recorded_once(ask, monkeypatch, build):
    build.tag()
    monkeypatch.setattr("cdb_rest.wsgi.shortcut.respond_to_lookup", lambda *_: 1 / 0)
    service, written = ask()
    assert service("GET", LOOKUP, HTTP_X_REQUEST_ID="job-7")[0] == 500
    assert [record["event"] for record in written(request_id="job-7")] == [
        "unexpected ZeroDivisionError",
        "finished",
    ]
    [error] = written(logger="cdb_rest.api.errors")
    assert error["exception"].splitlines()[-1].startswith("ZeroDivisionError")


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
    service("GET", '/x\n{"event": "forged"}\r\x1b[2J\x9b\u0085"')
    assert len(written.text.splitlines()) == 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in written.text.replace("\n", ""))


def test_a_traceback_can_not_steer_a_terminal(records):
    written = records(CDB_LOG_FORMAT="console")
    try:
        raise ValueError("\x1b[2J")
    except ValueError:
        logging.getLogger("cdb").exception("failed")
    assert written.text.count("ValueError: \\x1b[2J") == 1 and "\x1b" not in written.text


@pytest.mark.django_db
def test_a_path_is_recorded_as_its_client_means_it(ask):
    service, written = ask()
    service("GET", "/müon-✓".encode().decode("latin-1"))
    service("GET", "/" + "x" * 5000)
    first, second = written()
    assert first["path"] == "/müon-✓"
    assert second["path"] == "/" + "x" * 999


@pytest.mark.django_db
def test_probes_that_find_all_well_are_for_debugging(ask, monkeypatch):
    service, written = ask()
    for path in ("/health/live", "/health/ready"):
        assert service("GET", path)[0] == 200
    assert written() == []
    monkeypatch.setattr("cdb_rest.api.views.monitoring._known_migrations", lambda: {("cdb_rest", "0099_later")})
    assert service("GET", "/health/ready")[0] == 503
    [record] = written()
    assert (record["event"], record["level"], record["status"]) == ("finished", "warning", 503)


@pytest.mark.django_db
def test_probes_are_recorded_when_debugging(ask):
    service, written = ask(CDB_LOG_LEVEL="debug")
    service("GET", "/health/live")
    assert [record["event"] for record in written(level="debug")] == ["started", "finished"]


@pytest.mark.django_db
def test_the_level_leaves_out_what_is_usual(ask, build):
    build.tag()
    service, written = ask(CDB_LOG_LEVEL="warning")
    service("GET", LOOKUP)
    assert written() == []


def test_other_loggers_write_the_same_lines(records):
    written = records()
    logging.getLogger("gunicorn.error").warning("Invalid %s", "request")
    logging.getLogger("cdb_rest.somewhere").info("hello", extra={"unknown": "x"})
    logging.getLogger("django.db.backends").info("SELECT")
    first, second = written()
    assert (first["level"], first["logger"], first["event"]) == ("warning", "gunicorn.error", "Invalid request")
    assert (second["logger"], second["event"]) == ("cdb_rest.somewhere", "hello")
    assert "request_id" not in first and "unknown" not in second


@pytest.mark.parametrize("value", ["\ud800", 2**70, object(), b"\xff"])
def test_whatever_is_recorded_becomes_a_line(records, value):
    written = records()
    logging.getLogger("cdb").warning("%s", value)
    logging.getLogger("cdb").warning("event", extra={"fields": {"value": value}})
    assert len(written()) == 2
