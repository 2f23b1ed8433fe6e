"""HTTP caching: ETag, Last-Modified, Cache-Control, and conditional GETs of all cacheable routes."""

import json
import time
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.http import http_date, parse_http_date

from cdb_rest.models import GlobalTag
from tests.api.helpers import LOOKUP, OF_THE_TAG, insert
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db
CACHEABLE = (*OF_THE_TAG, "globalTags")
MUST_ASK = "public, no-cache"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", CACHEABLE)
def test_a_matching_validator_gets_304_from_one_small_statement(api, tag, path):
    answer = api.get(path)
    assert answer.headers["ETag"].startswith('"') and answer.headers["ETag"].endswith('"')
    with CaptureQueriesContext(connection) as queries:
        not_modified = api.get(path, if_none_match=answer.headers["ETag"])
    assert not_modified.status == 304 and len(queries) == 1
    assert '"PayloadIOV"' not in queries[0]["sql"]
    for name in ("ETag", "Cache-Control", "X-Accel-Expires"):
        assert not_modified.headers[name] == answer.headers[name]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", CACHEABLE)
def test_another_validator_gets_the_whole_response(api, tag, path):
    answer = api.get(path)
    for other in ('"1-2-3-4"', '"', "", "none", answer.headers["ETag"].strip('"'), '"' + "x" * 9000 + '"'):
        assert api.get(path, if_none_match=other).content == answer.content
    several = f'"a", W/{answer.headers["ETag"]} , "b"'
    assert api.get(path, if_none_match=several).status == 304
    assert api("HEAD", path, if_none_match=several).status == 304


@pytest.mark.django_db(transaction=True)
def test_questions_with_different_answers_have_different_names(api, tag):
    queries = [
        LOOKUP, LOOKUP + "&strict=1", LOOKUP + "&shape=dict", LOOKUP.replace("5", "0"), LOOKUP.replace("=0", "=1"),
        "globalTag/tag", "globalTag/tag?light", "gtPayloadLists/tag",
    ]  # fmt: skip
    named = [api.get(query).headers["ETag"] for query in queries]
    assert len(set(named)) == len(named)
    # What decides nothing gives no other name.
    assert api.get(LOOKUP + "&strict=0&unknown=1").headers["ETag"] == named[0]
    # A client that only has the answer without its window asks for more.
    assert api.get(LOOKUP + "&window=1", if_none_match=named[0]).status == 200


@pytest.mark.django_db(transaction=True)
def test_other_permissions_are_other_names(api, tag, settings):
    before = {path: api.get(path).headers["ETag"] for path in CACHEABLE}
    settings.CDB_UNLOCKED_MAX_AGE_SECONDS = 60
    for path, name in before.items():
        # A proxy that asks whether its answer still holds would go on giving out the headers that it has.
        assert api.get(path, if_none_match=name).headers["Cache-Control"] == "public, max-age=60"
        assert api.get(path, if_none_match=name).status == 200


@pytest.mark.django_db(transaction=True)
def test_a_client_that_can_not_see_where_a_body_ends_must_not_keep_it(api, tag):
    answer = api._client.generic("GET", "/api/cdb_rest/globalTag/tag", SERVER_PROTOCOL="HTTP/1.0")
    assert answer.status_code == 200 and json.loads(b"".join(answer))["name"] == "tag"
    assert answer["Cache-Control"] == "no-store"
    assert not {"ETag", "Last-Modified", "X-Accel-Expires"} & set(answer.headers)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("status", "seconds", "permission"),
    [
        ("frozen", None, "public, max-age=31536000, immutable"),
        ("locked", None, MUST_ASK),
        ("unlocked", None, MUST_ASK),
        ("approved", None, MUST_ASK),
        ("frozen", 60, "public, max-age=60, immutable"),
        ("locked", 60, "public, max-age=60"),
        ("unlocked", 60, "public, max-age=60"),
        ("approved", 60, "public, max-age=60"),
        ("frozen", 0, MUST_ASK),
    ],
)
def test_the_status_decides_how_long_an_answer_may_be_kept(api, tag, settings, status, seconds, permission):
    if seconds is not None:
        kind = "LOCKED" if status == "approved" else status.upper()
        setattr(settings, f"CDB_{kind}_MAX_AGE_SECONDS", seconds)
    if status == "approved":
        api.post("gtstatus", {"name": "approved"}).ok()
    if status != "unlocked":
        api.put(f"gt_change_status/tag/{status}").ok()
    for path in OF_THE_TAG:
        answer = api.get(path)
        assert answer.headers["Cache-Control"] == permission
        assert ("X-Accel-Expires" in answer.headers) == (permission == MUST_ASK)
        assert api.get(path, if_none_match=answer.headers["ETag"]).headers["Cache-Control"] == permission
    of_all = permission if status == "unlocked" else MUST_ASK
    assert api.get("globalTags").headers["Cache-Control"] == of_all


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "payloadiovs/?gtName=missing&majorIOV=5&minorIOV=0",
        "payloadiovs/",
        "globalTag/missing",
        "gtPayloadLists/missing",
        "x",
    ],
)
def test_errors_are_not_kept(api, tag, path):
    answer = api.get(path, if_none_match='"1"')
    assert answer.status in (400, 404) and answer.headers["Cache-Control"] == "no-store"
    assert "ETag" not in answer.headers


@pytest.mark.parametrize(("path", "other"), [("pt", "gtstatus"), ("gtstatus", "pt")])
def test_small_tables_have_an_etag_that_each_write_changes(api, tag, path, other):
    before, of_other = api.get(path), api.get(other)
    assert before.headers["Cache-Control"] == MUST_ASK
    assert api.get(path, if_none_match=before.headers["ETag"]).status == 304
    api.post(path, {"name": "Late"}).ok()
    after = api.get(path, if_none_match=before.headers["ETag"])
    assert [one["name"] for one in after.ok()] == [*(one["name"] for one in before.ok()), "Late"]
    assert api.get(other, if_none_match=of_other.headers["ETag"]).status == 304


def wait_for_time(api, path):
    """The path's time of last modification, once it is told."""
    wait_until(lambda: "Last-Modified" in api.get(path).headers)
    return api.get(path).headers["Last-Modified"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", OF_THE_TAG)
def test_a_cache_may_know_times_only(api, tag, path):
    modified = wait_for_time(api, path)
    assert api.get(path, if_modified_since=modified).status == 304
    for other in (http_date(parse_http_date(modified) + 1), http_date(parse_http_date(modified) - 1), "never", ""):
        assert api.get(path, if_modified_since=other).status == 200
    # A name says more than a time.
    assert api.get(path, if_modified_since=modified, if_none_match='"other"').status == 200


def test_no_two_states_have_one_time_however_fast_they_follow(api, tag):
    seen = {}
    begin = time.monotonic()
    number = 0
    while time.monotonic() < begin + 2.5:
        number += 1
        insert(api, f"file{number}", [1, 0])
        answer = api.get(LOOKUP)
        told = answer.headers.get("Last-Modified")
        assert told not in seen, "a state has the time of an earlier one"
        if told:
            assert parse_http_date(told) <= datetime.now(UTC).timestamp()
            seen[told] = answer.content
    assert number > 5


@pytest.mark.django_db(transaction=True)
def test_repairs_leave_the_answers_of_frozen_tags_alone(api, tag):
    api.put("gt_change_status/tag/frozen").ok()
    # The log is ahead of the tag, as after a restore of the one and not of the other.
    GlobalTag.objects.update(revision=0)
    before = {path: api.get(path).content for path in OF_THE_TAG}
    with pytest.raises(CommandError):
        call_command("check_intervals", "--repair", stdout=StringIO())
    assert {path: api.get(path).content for path in OF_THE_TAG} == before
