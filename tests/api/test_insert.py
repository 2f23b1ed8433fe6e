"""POST payload-iovs/insert: one call instead of six, its dry run, and requests that are sent again with an Idempotency-Key."""

from datetime import timedelta

import pytest
from django.utils import timezone

from cdb_rest.models import GlobalTag, GlobalTagChange, IdempotencyRecord, PayloadIOV, PayloadList, PayloadType
from tests.api.helpers import PATH, body

pytestmark = pytest.mark.django_db


def test_one_call_makes_the_list_and_the_row(api, empty_tag):
    answer = api.post(PATH, body(size=7, revision="3", until=[9, 1])).ok()
    [row] = answer["rows"]
    made = PayloadList.objects.get()
    assert answer["dry_run"] is False and answer["refused"] is None and answer["revisions"] == {"tag": 1}
    assert row["payload_list"] == made.name == f"Gain_{made.id}" and row["list_created"]
    assert row["added"] == {
        "id": PayloadIOV.objects.get().id,
        "payload_url": "new.root",
        "since": [5, 0],
        "until": [9, 1],
    }
    assert row["trimmed"] == row["moved"] == row["split"] == row["detached"] == []
    assert api.get("payloadiovs/?gtName=tag&majorIOV=6&minorIOV=0").ok() == [
        ["Gain", "new.root", "ab12", 7, 5, 0, 9, 1, "3"]
    ]
    assert api.get("gtPayloadLists/tag").ok() == {"Gain": made.name}
    again = api.post(PATH, body(since=[20, 0])).ok()
    assert not again["rows"][0]["list_created"] and again["revisions"] == {"tag": 2}
    assert again["rows"][0]["added"]["until"] == "open"


@pytest.mark.parametrize("say_so", ["member", "query"])
def test_a_dry_run_says_what_would_happen_and_changes_nothing(api, empty_tag, say_so):
    api.post(PATH, body(payload_url="old.root", since=[0, 0])).ok()
    before = [api.get("globalTag/tag").content, PayloadList.objects.count(), GlobalTagChange.objects.count()]
    PayloadType.objects.create(name="Noise")
    wanted = [body(until=[6, 0]), body(payload_type="Noise")]
    if say_so == "member":
        answer = api.post(PATH, [row | {"dry_run": True} for row in wanted]).ok()
    else:
        answer = api.post(f"{PATH}?dry_run=1", wanted).ok()
    assert answer["dry_run"] is True and answer["revisions"] == {}
    first, second = answer["rows"]
    assert first["added"]["id"] is None
    assert first["split"] == [
        {
            "id": PayloadIOV.objects.get().id,
            "payload_url": "old.root",
            "before": {"since": [0, 0], "until": "open"},
            "after": [{"since": [0, 0], "until": [5, 0]}, {"since": [6, 0], "until": "open"}],
        }
    ]
    assert second["list_created"] and second["payload_list"] is None
    assert [api.get("globalTag/tag").content, PayloadList.objects.count(), GlobalTagChange.objects.count()] == before
    real = api.post(PATH, wanted).ok()
    assert [row["split"] for row in real["rows"]] == [row["split"] for row in answer["rows"]]


@pytest.mark.parametrize(("status", "code"), [("locked", "iov_overlap"), ("frozen", "global_tag_frozen")])
def test_a_dry_run_says_why_it_would_be_refused(api, empty_tag, status, code):
    api.post(PATH, body(payload_url="old.root")).ok()
    api.put(f"gt_change_status/tag/{status}").ok()
    answer = api.post(PATH, body(dry_run=True)).ok()
    assert answer["refused"]["code"] == code and answer["rows"] == []
    refused = api.post(PATH, body()).error(409, code)
    assert refused["detail"] == answer["refused"]["detail"]
    if status == "locked":
        known = PayloadIOV.objects.get()
        expected = f"[(5, 0), open) overlaps [(5, 0), open) of payload IOV {known.id} (old.root)"
        assert expected in refused["detail"]


def test_all_or_nothing_and_every_wrong_row_is_named(api, empty_tag):
    wanted = [body(), body(global_tag="nothing"), body(payload_type="nothing"), body(since=[9, 0], until=[9, 0])]
    error = api.post(PATH, wanted).error(404, "global_tag_not_found")
    assert [(row["row"], row["code"]) for row in error["rows"]] == [
        (1, "global_tag_not_found"),
        (2, "payload_type_not_found"),
        (3, "invalid_input"),
    ]
    assert "Row 1" in error["detail"] and "3 of 4" in error["detail"]
    error = api.post(PATH, [body(), wanted[3]]).error(400, "invalid_input")
    assert [row["row"] for row in error["rows"]] == [1]
    error = api.post(PATH, [body(), body(since=[1]), body(until="never"), 5]).error(400, "invalid_input")
    assert [row["row"] for row in error["rows"]] == [1, 2, 3]
    api.post(PATH, [body(dry_run=True), body(dry_run=False)]).error(400, "invalid_input")
    assert PayloadIOV.objects.count() == PayloadList.objects.count() == 0
    assert GlobalTag.objects.get().revision == 0


def test_a_misspelt_member_is_refused(api, empty_tag):
    for wrong, hint in (("untill", "until"), ("dryrun", "dry_run"), ("major_iov_end", None)):
        error = api.post(PATH, body(**{wrong: "next"})).error(400, "invalid_input")
        assert error[wrong] == [f"{wrong} is not known here{f'; did you mean {hint}?' if hint else '.'}"]
    assert api.post(f"{PATH}?dry_run", body()).ok()["dry_run"] is True
    assert not PayloadIOV.objects.exists()


def test_the_end_must_be_named_because_leaving_it_out_would_remove_later_rows(api, empty_tag):
    api.post(PATH, [body(since=[number, 0], until="next", payload_url=f"{number}") for number in range(10)]).ok()
    without = body(since=[2, 5])
    del without["until"]
    for sent in (without, without | {"until": None}):
        [message] = api.post(PATH, sent).error(400, "invalid_input")["until"]
        assert all(choice in message for choice in ("[major, minor]", '"next"', '"open"'))
    assert PayloadIOV.objects.exclude(payload_list=None).count() == 10
    assert api.post(PATH, without | {"until": "open", "dry_run": True}).ok()["detail"] == (
        "Dry run, nothing was changed: payload IOVs inserted: 1; unchanged: 0; existing IOVs shortened, moved or split: 1; "
        "removed from their list: 7."
    )
    assert api.post(PATH, without | {"until": [2, 6]}).ok()["detail"] == (
        "Payload IOVs inserted: 1; unchanged: 0; existing IOVs shortened, moved or split: 1; removed from their list: 0."
    )


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
    api.post(PATH, body(payload_url="other"), **key).error(409, "iov_overlap")
    assert not IdempotencyRecord.objects.exists()
    api.put("gt_change_status/tag/unlocked").ok()
    api.post(PATH, body(), **key).ok()


def test_an_answer_that_is_too_old_is_given_no_more(api, empty_tag, settings):
    key = {"Idempotency-Key": "old"}
    first = api.post(PATH, body(), **key).ok()
    IdempotencyRecord.objects.update(created=timezone.now() - timedelta(hours=settings.CDB_IDEMPOTENCY_HOURS + 1))
    second = api.post(PATH, body(payload_url="other"), **key).ok()
    assert second["revisions"] == {"tag": 2} and second != first


@pytest.mark.django_db(transaction=True)
def test_a_writer_that_waits_too_long_is_told_why(api, empty_tag, second_connection, settings):
    settings.CDB_LOCK_TIMEOUT_SECONDS = 1
    with second_connection.cursor() as cursor:
        # As a long import does, or the preview of one.
        cursor.execute('BEGIN; SELECT FROM "GlobalTag" FOR UPDATE')
        found = api.post(PATH, body()).error(504, "database_unavailable")
        cursor.execute("ROLLBACK")
    assert "Another write or preview" in found["detail"]
    api.post(PATH, body()).ok()
