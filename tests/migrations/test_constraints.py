"""The constraints of the database, violated by SQL."""

import pytest
from django.db import IntegrityError, transaction

from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.moment import OPEN

pytestmark = pytest.mark.django_db


@pytest.fixture
def payload_list(build):
    return build.list(build.tag())


@pytest.mark.parametrize(
    ("columns", "constraint"),
    [
        ({"major_iov": -1}, "payload_iov_not_negative"),
        ({"minor_iov": -1}, "payload_iov_not_negative"),
        ({"size": -1}, "payload_iov_not_negative"),
        ({"major_iov_end": 4}, "payload_iov_end_not_before_start"),
        ({"major_iov_end": 5, "minor_iov_end": 4}, "payload_iov_end_not_before_start"),
        ({"extra": "1a"}, "payload_iov_revision_is_digits"),
        ({"extra": ""}, "payload_iov_revision_is_digits"),
    ],
)
def test_bad_rows_are_refused(payload_list, columns, constraint):
    row = {"payload_url": "u", "major_iov": 5, "minor_iov": 5, "payload_list": payload_list} | columns
    with pytest.raises(IntegrityError, match=constraint):
        PayloadIOV.objects.create(**row)


@pytest.mark.django_db(transaction=True)
def test_two_rows_of_a_list_have_different_starts_and_detached_ones_may_share(payload_list, build):
    build.iov(payload_list, (OPEN, OPEN))
    with pytest.raises(IntegrityError, match="payload_iov_lookup"):
        build.iov(payload_list, (OPEN, OPEN))
    build.iov(payload_list, (OPEN, OPEN - 1))
    build.iov(None, (1, 1))
    build.iov(None, (1, 1))


def test_a_tag_has_one_list_of_a_type(payload_list, build):
    with pytest.raises(IntegrityError, match="payload_list_one_per_tag_and_type"):
        build.list(payload_list.global_tag)


@pytest.mark.django_db(transaction=True)
def test_rows_in_use_cannot_be_deleted_by_sql(payload_list, build):
    build.iov(payload_list, (0, 0))
    for rows in (GlobalTag.objects.all(), PayloadType.objects.all(), PayloadList.objects.all()):
        with pytest.raises(IntegrityError), transaction.atomic():
            rows._raw_delete("default")
