"""manage.py check_intervals: the faults that it finds, those that it repairs, and those that it leaves."""

import re
from functools import partial

import pytest

from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList
from tests.commands.helpers import attempt

pytestmark = pytest.mark.django_db(transaction=True)


check = partial(attempt, "check_intervals")


def kinds(printed):
    return sorted(re.findall(r"^(empty|equal start|overlap|revision lags|incorrect count) ", printed, re.MULTILINE))


def answers(api, tag="tag"):
    """Which payloads are valid at each moment; the ends that are shown with them may be repaired."""
    paths = [f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=0&strict=1" for major in range(40)]
    return [[row[:2] for row in api.get(path).ok()] for path in paths]


def spoil(build, name="tag"):
    """A tag with one fault of each kind that the constraints let through."""
    payload_list = build.list(build.tag(name))
    build.iov(payload_list, (0, 0), (15, 0), url="reaches too far")
    build.iov(payload_list, (10, 0), (30, 0), url="hidden")
    build.iov(payload_list, (20, 0), (20, 0), url="empty")
    PayloadList.objects.filter(id=payload_list.id).update(iov_count=7)
    return payload_list


def test_faults_are_found_and_repaired_and_no_answer_changes(api, build):
    payload_list = spoil(build)
    build.iov(build.list(None), (0, 0), (0, 0), url="in no tag")
    GlobalTagChange.objects.create(
        global_tag="tag",
        revision=5,
        created="2026-01-01T00:00Z",
        actor="a",
        action="bulk",
        payload_iovs_before=0,
        payload_iovs_after=0,
        number=1,
    )
    before = answers(api)
    ok, printed = check()
    assert not ok and "--repair" in printed
    # The changed count of the list goes on to its tag, whose own count is wrong then too.
    assert kinds(printed) == ["empty", "empty", *["incorrect count"] * 2, "overlap", "overlap", "revision lags"]
    assert payload_list.name in printed and str(PayloadIOV.objects.get(payload_url="empty").id) in printed
    ok, printed = check("--repair")
    assert ok and "repaired: 7" in printed
    assert check()[0]
    assert answers(api) == before
    ends = (
        PayloadIOV.objects.filter(payload_list=payload_list)
        .order_by("comb_iov")
        .values_list("payload_url", "major_iov_end")
    )
    assert list(ends) == [("reaches too far", 10), ("hidden", 20)]
    assert PayloadIOV.objects.get(payload_url="empty").payload_list is None
    log = GlobalTagChange.objects.filter(global_tag="tag").order_by("-revision").first()
    assert GlobalTagChange.objects.filter(action="repair").count() == 1
    assert log.action == "repair" and log.revision == GlobalTag.objects.get().revision > 5
    assert log.actor.startswith("check_intervals")
