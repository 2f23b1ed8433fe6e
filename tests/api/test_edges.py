"""Requests that are too large or arrive in an unusual way, and internal errors: the responses outside of the views."""

import re

import pytest
from django.db import OperationalError, ProgrammingError, connection

from tests.api.helpers import READS, WRITES

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


SECRETS = (
    'relation "GlobalTag" of db.example.org does not exist LINE 1: SELECT 5432 FROM /srv/cdb with password hunter2'
)
TELLING = re.compile(
    r'SELECT|INSERT|relation|hunter2|5432|\.py|/srv/|Traceback|psycopg|django|gunicorn|PostgreSQL|File "|CDB_|DATABASE_URL',
    re.IGNORECASE,
)
BODY = {
    "name": "n", "status": "unlocked", "payload_type": "Gain", "payload_list": "l", "global_tag": "tag", "piov_id": 1,
}  # fmt: skip


def failing_with(error):
    def fail(execute, sql, parameters, many, context):
        raise error

    return connection.execute_wrapper(fail)


@pytest.mark.parametrize("error", [ProgrammingError(SECRETS), OperationalError(SECRETS), ZeroDivisionError(SECRETS)])
@pytest.mark.parametrize(("method", "path"), [*(("GET", path) for path in READS), *WRITES])
def test_no_answer_tells_what_broke(api, monkeypatch, caplog, method, path, error):
    with failing_with(error):
        answer = api(method, path.replace("{}", "1"), None if method == "GET" else BODY)
    assert answer.status in (200, 400, 401, 404, 500, 504) and not TELLING.search(answer.content.decode())
    if answer.status == 500:
        # The operator's log has it.
        assert answer.json == {"detail": "An internal error occurred; it was logged.", "code": "internal_error"}
        assert "hunter2" in caplog.text


def test_an_unknown_host_is_told_no_setting(api):
    error = api("GET", "globalTags", Host="evil.example").error(400, "bad_request")
    assert "evil.example" in error["detail"] and not TELLING.search(error["detail"])
