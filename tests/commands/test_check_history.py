"""manage.py check_history: faults that SQL of other programs causes, how they are repaired, and what stays faulty."""

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from cdb_rest.history.contents import past_iovs, past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.models import (
    GlobalTag,
    GlobalTagChange,
    GlobalTagStatus,
    PayloadIOV,
    PayloadIOVHistory,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
    PayloadType,
)
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, RevisionPrunedError
from cdb_rest.writes import global_tags, insertion, payload_lists

pytestmark = pytest.mark.django_db(transaction=True)

# The raw row of another program, which knows nothing of versions.
INSERT = """
    INSERT INTO "PayloadIOV" (payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id)
    SELECT 'raw', '', 0, 15, 0, 18, 0, id FROM "PayloadList" WHERE name = %s
"""


def check(*arguments):
    """Whether the exit code is 0, and what was printed."""
    out = StringIO()
    try:
        call_command("check_history", *arguments, stdout=out)
    except CommandError as error:
        return False, out.getvalue() + str(error)
    return True, out.getvalue()


def kinds(printed):
    pattern = r"^(two versions|number of IOVs|areas|version|membership|two tags|status|newest change)  "
    return re.findall(pattern, printed, re.MULTILINE)


def sql(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        assert cursor.rowcount > 0, "the fault was not put in"


@pytest.fixture
def history():
    """Two tags with a list each, of which rows were cut, removed and replaced. Returns the names of the lists."""
    PayloadType.objects.create(name="Gain")
    names = []
    for tag in ("tag", "other"):
        global_tags.create_global_tag(name=tag, status="unlocked")
        for since, until in ((0, 10), (11, 20), (20, None), (5, 25), (12, 14), (30, None), (0, 8)):
            insert(tag, since, until)
        names.append(PayloadList.objects.get(global_tag__name=tag).name)
    return names


def insert(tag, since, until=None):
    row = {
        "global_tag": tag,
        "payload_type": "Gain",
        "payload_url": f"{tag} {since} to {until}",
        "major_iov": since,
        "minor_iov": 0,
        "since_only": False,
    }
    end = {} if until is None else {"major_iov_end": until, "minor_iov_end": 0}
    insertion.insert_payloads(rows=[row | end])


def present(api):
    """The responses to lookups of the present, and the tags."""
    return {
        tag: [api.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=0").content for major in range(0, 50, 2)]
        for tag in GlobalTag.objects.values_list("name", flat=True)
    }


def known(tag="tag"):
    """The rows of all revisions of a tag that can be asked for."""
    found = {}
    for revision in GlobalTagChange.objects.filter(global_tag=tag).values_list("revision", flat=True):
        try:
            past = find_past(tag, AsOf(revision=revision))
        except (RevisionPrunedError, GlobalTagNotFoundError):
            continue
        with transaction.atomic():
            found[revision] = [(row["comb_iov"], row["payload_url"]) for row in past_iovs(past_lists(past))]
    return found


def repaired(api, *expected, unchanged=True):
    """Check that these faults and no others are found, and that a repair leaves none, and the present as it was."""
    before, other = present(api), known("other")
    ok, printed = check()
    assert not ok and kinds(printed) == list(expected), printed
    ok, printed = check("--repair")
    assert ok and f"repaired: {len(expected)}" in printed, printed
    ok, again = check()
    assert ok, again
    assert present(api) == before
    if unchanged:
        assert known("other") == other
    # The current revision of each tag can be asked for, and is the present.
    for tag in GlobalTag.objects.all():
        rows = PayloadIOV.objects.filter(payload_list__global_tag=tag).order_by("payload_list_id", "comb_iov")
        assert known(tag.name)[tag.revision] == list(rows.values_list("comb_iov", "payload_url"))
    return printed


def test_a_sound_history_has_no_faults(history):
    global_tags.clone_global_tag(source="tag", target="copy")
    payload_lists.attach_payload_list(global_tag="copy", payload_list=history[1])
    global_tags.delete_global_tag(name="tag")
    global_tags.delete_global_tag(name="copy")
    ok, printed = check()
    assert ok and "No faults found" in printed, printed
    assert check("--tag", "tag")[0]


def test_rows_that_another_program_inserted_begin_now(api, history):
    before = known()
    sql(INSERT, history[0])
    # It seems to have been there from the beginning.
    assert known() != before
    printed = repaired(api, "areas", "number of IOVs")
    assert "dropped" not in printed
    after = known()
    newest = max(after)
    assert {revision: after[revision] for revision in before} == before
    assert newest == max(before) + 1 and "raw" in [url for _, url in after[newest]]
    entry = GlobalTagChange.objects.get(global_tag="tag", revision=newest)
    assert (entry.action, entry.payload_iovs_before, entry.payload_iovs_after) == ("repair", 0, 1)
    assert entry.actor.startswith("check_history")


def test_lookups_of_the_past_are_as_before_a_row_was_inserted(api, history):
    def answers(revision):
        path = f"payloadiovs/?gtName=tag&rev={revision}&minorIOV=0&majorIOV="
        return [api.get(f"{path}{major}").ok() for major in range(0, 50, 2)]

    revisions = range(2, 9)
    before = {revision: answers(revision) for revision in revisions}
    sql(INSERT, history[0])
    assert check("--repair")[0]
    assert {revision: answers(revision) for revision in revisions} == before
    insert("tag", 3, 35)
    assert {revision: answers(revision) for revision in revisions} == before
    assert check()[0]


def test_rows_of_a_later_version_than_the_list(api, history):
    sql('UPDATE "PayloadIOV" SET added_in = 99 WHERE major_iov = 30 AND payload_list_id IN '
        '(SELECT id FROM "PayloadList" WHERE name = %s)', history[0])  # fmt: skip
    # Without this row, earlier versions have fewer IOVs than were recorded, and a gap.
    repaired(api, "version", "areas", "number of IOVs")


def test_rows_that_another_program_deleted(api, history):
    sql('DELETE FROM "PayloadIOV" WHERE payload_url = %s', "tag 12 to 14")
    printed = repaired(api, "areas", "number of IOVs")
    # Revision 1 had no list.
    assert "Global tag tag: the history of 7 revisions was dropped." in printed
    assert set(known()) == {1, 9}
    assert GlobalTagChange.objects.get(global_tag="tag", action="repair").revision == 9
    insert("tag", 3, 35)
    assert check()[0] and set(known()) == {1, 9, 10}


def test_superseded_rows_that_another_program_deleted(api, history):
    sql('DELETE FROM "PayloadIOVHistory" WHERE payload_url = %s', "tag 5 to 25")
    repaired(api, "areas", "number of IOVs")
    assert 8 not in known() and 1 in known()


def test_two_versions_of_a_row_at_the_same_time(api, history):
    sql("""
        INSERT INTO "PayloadIOVHistory" (
            payload_list_id, node, comb_iov, until, added_in, removed_in, iov_id, payload_url, checksum, size, major_iov,
            minor_iov, major_iov_end, minor_iov_end, created
        )
        SELECT payload_list_id, cdb_fork_node(added_in, added_in + 1), comb_iov, comb_iov + 1, added_in, added_in + 1, 1, 'raw',
            '', 0, major_iov, minor_iov, major_iov_end, minor_iov_end, now()
        FROM "PayloadIOV" WHERE payload_url = %s
    """, "tag 12 to 14")  # fmt: skip
    repaired(api, "two versions", "areas", "number of IOVs")
    assert set(known()) == {1, 9}
    assert not PayloadIOVHistory.objects.filter(payload_list_id=PayloadList.objects.get(name=history[0]).id).exists()


def test_areas_that_overlap(api, history):
    sql("""
        INSERT INTO "PayloadIOVHistory" (payload_list_id, node, comb_iov, until, added_in, removed_in, row_start)
        SELECT id, cdb_fork_node(2, 5), 7, 8, 2, 5, 0 FROM "PayloadList" WHERE name = %s
    """, history[0])  # fmt: skip
    repaired(api, "areas")


def test_an_overlap_that_needs_the_second_sum(api, history):
    """One area is moved: the lengths add up to the same, but the moments are not covered."""
    sql("""
        UPDATE "PayloadIOVHistory" SET comb_iov = comb_iov + 1, until = until + 1
        WHERE payload_url = %s AND until IS NOT NULL
    """, "tag 11 to 20")  # fmt: skip
    repaired(api, "areas")


def test_a_version_that_the_list_does_not_have(api, history):
    sql('UPDATE "PayloadList" SET version = version - 3 WHERE name = %s', history[0])
    printed = check()[1]
    assert "version 4, but the last recorded one is 7" in printed
    repaired(api, "version", "version")


def test_versions_in_the_wrong_order(api, history):
    sql("""
        UPDATE "PayloadListVersion" SET version = 9 - version
        WHERE version IN (4, 5) AND payload_list_id IN (SELECT id FROM "PayloadList" WHERE name = %s)
    """, history[0])  # fmt: skip
    assert "version 4 is recorded after version 5" in check()[1]
    assert kinds(check()[1])[0] == "version"
    check("--repair")
    assert check()[0]


def test_the_number_of_iovs_of_an_older_version(api, history):
    sql("""
        UPDATE "PayloadListVersion" SET iov_count = 77
        WHERE version = 4 AND payload_list_id IN (SELECT id FROM "PayloadList" WHERE name = %s)
    """, history[0])  # fmt: skip
    assert "1 versions, such as version 4: 77 recorded" in check()[1]
    repaired(api, "number of IOVs")


def test_a_list_that_another_program_attached_is_in_the_tag_from_now_on(api, history):
    made = payload_lists.create_payload_list(payload_type=PayloadType.objects.create(name="Noise").name)
    tag_id = GlobalTag.objects.get(name="tag").id
    sql('UPDATE "PayloadList" SET global_tag_id = %s WHERE id = %s', tag_id, made.id)
    before = known()
    repaired(api, "membership")
    assert {revision: known()[revision] for revision in before} == before
    lists = [one.name for one in past_lists(find_past("tag", AsOf(revision=9)))]
    assert lists == [history[0], made.name]


def test_a_list_that_another_program_detached_is_in_the_tag_until_now(api, history):
    before = known()
    sql('UPDATE "PayloadList" SET global_tag_id = NULL WHERE name = %s', history[0])
    repaired(api, "membership")
    after = known()
    assert after.pop(9) == [] and after == before


def test_a_list_in_two_tags(api, history):
    member = PayloadListMembership.objects.get(name=history[0])
    other = GlobalTag.objects.get(name="other")
    PayloadListMembership.objects.create(
        tag_id=other.id, payload_list_id=member.payload_list_id, name=member.name, payload_type="Noise",
        created=member.created, added_in=1, removed_in=member.added_in + 2,
    )  # fmt: skip
    printed = repaired(api, "two tags", unchanged=False)
    assert "Global tag tag: " in printed
    assert PayloadListMembership.objects.filter(payload_list_id=member.payload_list_id).count() == 1
    # Before the list came, and now.
    assert set(known()) == {1, 9}


def test_memberships_of_a_tag_that_is_gone(api, history):
    member = PayloadListMembership.objects.get(name=history[1])
    member.pk, member.tag_id, member.payload_list_id = None, 10**9, 10**9
    member.save(force_insert=True)
    assert kinds(check()[1]) == ["membership"]
    assert check("--repair")[0] and check()[0]
    assert not PayloadListMembership.objects.filter(tag_id=10**9, removed_in=None).exists()


@pytest.mark.parametrize("status", ["locked", "frozen"])
def test_a_status_that_another_program_set(api, history, status):
    wanted = GlobalTagStatus.objects.get(name=status).id
    sql('UPDATE "GlobalTag" SET status_id = %s WHERE name = %s', wanted, "tag")
    repaired(api, "status")
    assert GlobalTag.objects.get(name="tag").revision == 8
    assert find_past("tag", AsOf(revision=8)).status == status


@pytest.mark.parametrize("raised", [-2, 3])
def test_a_revision_that_another_program_set(api, history, raised):
    sql('UPDATE "GlobalTag" SET revision = revision + %s WHERE name = %s', raised, "tag")
    ok, printed = check("--repair")
    assert ok and kinds(printed) == ["newest change"]
    assert check()[0]
    tag = GlobalTag.objects.get(name="tag")
    assert tag.revision == max(8 + raised, 8) + 1 and tag.revision in known()


def test_a_tag_that_another_program_created_with_a_former_name(api, history):
    global_tags.delete_global_tag(name="tag")
    sql('INSERT INTO "GlobalTag" (name, author, description, status_id, revision) '
        'SELECT %s, %s, %s, id, 9 FROM "GlobalTagStatus" WHERE name = %s', "tag", "", "", "unlocked")  # fmt: skip
    repaired(api, "newest change")
    assert find_past("tag", AsOf(revision=10)).tag_id == GlobalTag.objects.get(name="tag").id


def test_a_frozen_tag_gets_no_revision_and_its_faults_remain(api, history):
    global_tags.change_status(name="tag", status="frozen")
    sql('DELETE FROM "PayloadIOV" WHERE payload_url = %s', "tag 12 to 14")
    sql('DELETE FROM "PayloadIOV" WHERE payload_url = %s', "other 12 to 14")
    before = present(api)
    ok, printed = check("--repair")
    assert not ok and "Not repaired, because the tag is frozen" in printed and "not repaired: 2" in printed
    assert kinds(printed.split("Not repaired")[1]) == ["areas", "number of IOVs"]
    assert present(api) == before
    assert GlobalTag.objects.get(name="tag").revision == 9 and 9 in known()
    assert check("--tag", "other")[0] and not check("--tag", "tag")[0]


def test_the_past_of_a_deleted_list(api, history):
    global_tags.delete_global_tag(name="tag")
    sql('DELETE FROM "PayloadIOVHistory" WHERE payload_url = %s', "tag 5 to 25")
    printed = repaired(api, "areas", "number of IOVs")
    assert "Global tag tag: the history of 7 revisions was dropped." in printed
    assert set(known()) == {1}


def test_only_one_tag(history):
    for name in history:
        sql(INSERT, name)
    ok, printed = check("--tag", "tag", "--repair")
    assert ok and kinds(printed) == ["areas", "number of IOVs"]
    assert history[0] in printed and history[1] not in printed
    assert history[1] in check()[1] and history[0] not in check()[1]
    assert "There is no global tag nothing." in check("--tag", "nothing")[1]


def test_what_was_pruned_is_no_fault(history):
    global_tags.delete_global_tag(name="other")
    call_command("prune_history", "--keep", "3", stdout=StringIO())
    assert PayloadListVersion.objects.filter(version=0).count() == 0
    ok, printed = check()
    assert ok, printed
    insert("tag", 2, 33)
    assert check()[0]


def test_faults_of_versions_that_no_revision_needs_are_none(history):
    call_command("prune_history", "--keep", "1", stdout=StringIO())
    sql(
        'UPDATE "PayloadListVersion" SET iov_count = iov_count + 1 WHERE payload_list_id = (SELECT min(id) FROM "PayloadList")'
    )
    assert kinds(check()[1]) == ["number of IOVs"]
    assert check("--repair")[0] and check()[0]
