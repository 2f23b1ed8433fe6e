"""Requests that are sent again with an Idempotency-Key."""

from datetime import timedelta

import pytest
from django.utils import timezone

from cdb_rest.models import GlobalTag, IdempotencyRecord, PayloadIOV
from tests.api.helpers import PATH, body

pytestmark = pytest.mark.django_db


def test_a_repeated_request_gets_the_first_answer(api, empty_tag):
    key = {"Idempotency-Key": "7d1c"}
    first = api.post(PATH, body(), **key)
    second = api.post(PATH, body(), **key)
    assert second.content == first.content and PayloadIOV.objects.count() == 1
    assert GlobalTag.objects.get().revision == 1
    api.post(PATH, body(since=[6, 0]), **key).error(409, "idempotency_key_reused")
    api.post(PATH, body(since=[6, 0]), **{"Idempotency-Key": "7d1d"}).ok()
    for bad in ("", "x" * 256, "two words"):
        api.post(PATH, body(), **{"Idempotency-Key": bad}).error(400, "invalid_input")


def test_a_rejected_write_has_no_idempotency_record(api, empty_tag):
    api.post(PATH, body()).ok()
    api.put("gt_change_status/tag/locked").ok()
    key = {"Idempotency-Key": "7d1c"}
    api.post(PATH, body(), **key).error(409, "iov_overlap")
    assert not IdempotencyRecord.objects.exists()
    api.put("gt_change_status/tag/unlocked").ok()
    api.post(PATH, body(), **key).ok()


def test_bulk_requests_can_be_repeated_too(api, build, empty_tag):
    row = {"payload_url": "b", "payload_list": build.list(empty_tag).name, "major_iov": 1, "minor_iov": 0}
    answers = [api.post(path, [row], **{"Idempotency-Key": "1"}).ok() for path in ("bulk_piov", "payload-iovs/bulk/")]
    assert answers[0] == answers[1] and PayloadIOV.objects.count() == 1


def test_an_answer_that_is_too_old_is_given_no_more(api, empty_tag, settings):
    key = {"Idempotency-Key": "old"}
    first = api.post(PATH, body(), **key).ok()
    IdempotencyRecord.objects.update(created=timezone.now() - timedelta(hours=settings.CDB_IDEMPOTENCY_HOURS + 1))
    second = api.post(PATH, body(), **key).ok()
    assert second["revisions"] == {"tag": 2} and second != first
