"""SQL of other programs on lists that share rows: whose answers, counts and ETags it changes, unlike writes of the service."""

import pytest
from django.db import connection

from cdb_rest.maintenance.history_check import find_history_faults
from cdb_rest.maintenance.repair import find_incorrect_counts
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import Moment
from cdb_rest.writes import global_tags, insertion, payload_iovs, reverting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payload_types")]
# Clones of the base: of its present, of its past, and one that was written to. The other tag has only the first type.
TAGS = ["base", "copy", "early", "written", "other"]
SHARING = {"base", "copy", "early"}


def insert(tag, since, kind="Gain"):
    row = {"global_tag": tag, "payload_type": kind, "payload_url": f"{tag} {kind} {since}", "major_iov": since}
    insertion.insert_payloads(rows=[row | {"minor_iov": 0, "since_only": False}])


@pytest.fixture
def tags():
    for tag in ("base", "other"):
        global_tags.create_global_tag(name=tag, status="unlocked")
        insert(tag, 0)
        insert(tag, 10)
    insert("base", 0, "Noise")
    global_tags.clone_global_tag(source="base", target="early", as_of=AsOf(revision=4))
    insert("base", 20)
    for tag in ("copy", "written"):
        global_tags.clone_global_tag(source="base", target=tag)
    insert("written", 20)
    insert("written", 5, "Noise")


def list_id(tag, kind="Gain"):
    return PayloadList.objects.get(global_tag__name=tag, payload_type__name=kind).id


def path(tag):
    return f"payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0"


def changed(api, write):
    """The tags whose ETags change by a write, and those whose answers change."""
    before = {tag: api.get(path(tag)) for tag in TAGS}
    write()
    after = {tag: api.get(path(tag)) for tag in TAGS if GlobalTag.objects.filter(name=tag).exists()}
    etags = {tag for tag in after if after[tag].headers["ETag"] != before[tag].headers["ETag"]}
    # What a cache may still have is what the service answers.
    for tag, answer in after.items():
        again = api.get(path(tag), if_none_match=before[tag].headers["ETag"])
        assert again.status == (200 if tag in etags else 304)
        assert tag in etags or answer.json == before[tag].json
    assert find_incorrect_counts() == []
    return etags, {tag for tag in after if after[tag].json != before[tag].json}


@pytest.mark.parametrize(
    ("statement", "etags", "answers"),
    [
        ("UPDATE \"PayloadIOV\" SET payload_url = 'raw' WHERE payload_list_id = {base}", SHARING, SHARING),
        ('UPDATE "PayloadIOV" SET major_iov = 1 WHERE major_iov = 0 AND payload_list_id = {base}', SHARING, SHARING),
        ('UPDATE "PayloadIOV" SET payload_list_id = NULL WHERE payload_list_id = {base}', SHARING, SHARING),
        ('DELETE FROM "PayloadIOV" WHERE major_iov = 0 AND payload_list_id = {base}', SHARING, SHARING),
        ("UPDATE \"PayloadIOV\" SET payload_url = 'raw' WHERE payload_list_id = {written}", {"written"}, {"written"}),
        ("UPDATE \"PayloadType\" SET name = 'Loss' WHERE name = 'Noise'", {*TAGS} - {"other"}, {*TAGS} - {"other"}),
        ('TRUNCATE "PayloadIOV"', {*TAGS}, {*TAGS}),
        (
            "INSERT INTO \"PayloadIOV\" (payload_url, major_iov, minor_iov, payload_list_id) VALUES ('raw', 10, 5, {base})",
            SHARING,
            set(),
        ),
        (
            'UPDATE "PayloadIOV" SET payload_list_id = {base}, major_iov = 8 WHERE payload_list_id = {other} AND major_iov = 0',
            {*SHARING, "other"},
            {"other"},
        ),
        (
            'UPDATE "PayloadIOV" SET payload_list_id = {other}, major_iov = 9 WHERE payload_list_id = {base} AND major_iov = 0',
            {*SHARING, "other"},
            SHARING,
        ),
    ],
)
def test_sql_of_another_program_changes_a_list_and_those_that_share_it(api, tags, statement, etags, answers):
    ids = {tag: list_id(tag) for tag in TAGS}
    assert changed(api, lambda: execute(statement.format(**ids))) == (etags, answers)


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO \"PayloadIOV\" (payload_url, major_iov, minor_iov, payload_list_id) VALUES ('raw', 9, 0, {copy})",
        "UPDATE \"PayloadIOV\" SET payload_list_id = {copy} WHERE payload_url = 'raw'",
    ],
)
def test_a_row_that_another_program_gives_to_a_sharing_list_is_in_it(api, tags, build, statement):
    build.iov(None, (9, 0), url="raw")
    copied = list_id("copy")
    assert changed(api, lambda: execute(statement.format(copy=copied))) == ({"copy"}, set())
    urls = [row[1] for row in api.get("payloadiovs/?gtName=copy&majorIOV=9&minorIOV=0&payloadType=Gain").ok()]
    assert urls == ["raw"]
    assert api.get("payloadiovs/?gtName=copy&majorIOV=9&minorIOV=0&rev=1").ok()[0][1] == "base Gain 0"
    assert "number of IOVs" in {fault.kind for fault in find_history_faults(global_tag="copy")}
    insert("copy", 15)
    assert PayloadIOV.objects.filter(payload_list=copied).count() == 4
    assert find_incorrect_counts() == []


def remove():
    payload_iovs.delete_payload_iov(global_tag="base", payload_type="Gain", start=Moment(0, 0), end=Moment(10, 0))


@pytest.mark.parametrize(
    ("write", "etags"),
    [
        (lambda: insert("base", 3), {"base"}),
        (remove, {"base"}),
        (lambda: reverting.revert_global_tag(name="base", revision=2), {"base"}),
        (lambda: global_tags.delete_global_tag(name="base"), set()),
        (lambda: global_tags.delete_global_tag(name="base", keep_history=False), set()),
        (lambda: insert("copy", 3), {"copy"}),
        (lambda: global_tags.delete_global_tag(name="copy"), set()),
        (lambda: global_tags.clone_global_tag(source="copy", target="new"), set()),
    ],
)
def test_a_write_of_the_service_changes_one_tag(api, tags, write, etags):
    assert changed(api, write)[0] == etags
