"""Requests that are too large, arrive in an unusual way or meet a bug: the responses outside of the views."""

import pytest

from tests.api.paths import WRITES

pytestmark = pytest.mark.django_db


def test_a_body_over_the_limit_is_413(api, settings):
    settings.CDB_MAX_BODY_BYTES = 2000
    for method, path in WRITES:
        api(method, path, raw=b" " * 2001).error(413, "body_too_large")
    api.post("pt", {"name": "Gain"}).ok()


def test_a_bulk_request_of_too_many_rows_is_413(api, settings):
    settings.CDB_MAX_BULK_ROWS = 3
    api.post("bulk_piov", [1] * 4).error(413, "too_many_rows")
    assert len(api.post("bulk_piov", [1] * 3).error(400)["rows"]) == 3


def test_a_chunked_body_is_refused_clearly(api):
    api("POST", "pt", raw=b"", **{"Transfer-Encoding": "chunked"}).error(400, "length_required")


def test_an_unknown_host_is_refused_in_json(api):
    api.get("globalTags", host="evil.example").error(400, "bad_request")


@pytest.mark.parametrize("debug", [False, True])
def test_a_bug_is_500_in_json_and_logged(api, monkeypatch, caplog, settings, debug):
    settings.DEBUG = debug

    def fail(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("cdb_rest.lookup.queries.look_up_here", fail)
    error = api.get("payloadiovs/?gtName=a&majorIOV=0&minorIOV=0").error(500, "internal_error")
    assert "ZeroDivisionError" in caplog.text
    assert "Zero" not in error["detail"]
    assert ("traceback" in error) == debug
