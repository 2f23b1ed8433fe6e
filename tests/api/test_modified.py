"""Last-Modified and If-Modified-Since: no two states of a tag have the same time."""

import time
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils.http import http_date, parse_http_date

from cdb_rest.models import GlobalTag
from tests.api.cached import LOOKUP, OF_THE_TAG, insert

pytestmark = pytest.mark.django_db


def wait_for_time(api, path):
    """The path's time of last modification, once it is told."""
    deadline = time.monotonic() + 5
    while "Last-Modified" not in (answer := api.get(path)).headers:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer.headers["Last-Modified"]


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
