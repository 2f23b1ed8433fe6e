"""manage.py check_history: faults that SQL of other programs causes, how they are repaired, and what stays faulty."""

import re
from functools import partial

import pytest

from cdb_rest.history.contents import find_past, past_lists
from cdb_rest.models import GlobalTag, GlobalTagChange, GlobalTagStatus, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.as_of import AsOf
from cdb_rest.writes import global_tags, payload_lists
from tests.commands.helpers import attempt, insert, known, sql

pytestmark = pytest.mark.django_db(transaction=True)

# The raw row of another program, which knows nothing of versions.
INSERT = """
    INSERT INTO "PayloadIOV" (payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id)
    SELECT 'raw', '', 0, 15, 0, 18, 0, id FROM "PayloadList" WHERE name = %s
"""


check = partial(attempt, "check_history")


def kinds(printed):
    pattern = r"^(two versions|number of IOVs|areas|version|membership|two tags|status|newest change)  "
    return re.findall(pattern, printed, re.MULTILINE)


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


def present(api):
    """The responses to lookups of the present, and the tags."""
    return {
        tag: [api.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=0").content for major in range(0, 50, 2)]
        for tag in GlobalTag.objects.values_list("name", flat=True)
    }


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


@pytest.mark.parametrize(
    ("statement", "parameter"),
    [(INSERT, "{list}"), ('DELETE FROM "PayloadIOV" WHERE payload_url = %s', "tag Gain 12 to 14")],
)
def test_the_history_of_rows_that_another_program_wrote_begins_anew(api, history, statement, parameter):
    before = known()
    sql(statement, parameter.format(list=history[0]))
    # They seem to have been there, or not, from the beginning.
    assert known() != before
    printed = repaired(api, "areas", "number of IOVs")
    # Revision 1 had no list.
    assert "Global tag tag: the history of 7 revisions was dropped." in printed
    assert set(known()) == {1, 9}
    entry = GlobalTagChange.objects.get(global_tag="tag", action="repair")
    assert entry.revision == 9 and entry.actor.startswith("check_history")
    insert("tag", 3, 35)
    assert check()[0] and set(known()) == {1, 9, 10}


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


def test_a_list_that_was_in_two_tags(api, history):
    sql("""
        INSERT INTO "PayloadListMembership" (tag_id, payload_list_id, name, payload_type, created, added_in)
        SELECT tag.id, list.id, list.name, 'Gain', list.created, nextval('cdb_change_number')
        FROM "GlobalTag" AS tag, "PayloadList" AS list
        WHERE tag.name = 'tag' AND list.name = %s
    """, history[1])  # fmt: skip
    printed = repaired(api, "membership", "two tags")
    assert "Global tag tag: the history of 8 revisions was dropped." in printed and set(known()) == {9}


def test_a_tag_that_another_program_deleted(api, history):
    sql('DELETE FROM "PayloadIOV" WHERE payload_list_id IN (SELECT id FROM "PayloadList" WHERE name = %s)', history[0])
    sql('DELETE FROM "PayloadList" WHERE name = %s', history[0])
    sql('DELETE FROM "GlobalTag" WHERE name = %s', "tag")
    repaired(api, "areas", "number of IOVs", "membership")
    assert known() == {}


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


def test_a_frozen_tag_gets_no_revision_and_its_faults_remain(api, history):
    global_tags.change_status(name="tag", status="frozen")
    sql('DELETE FROM "PayloadIOV" WHERE payload_url = %s', "tag Gain 12 to 14")
    sql('DELETE FROM "PayloadIOV" WHERE payload_url = %s', "other Gain 12 to 14")
    before = present(api)
    ok, printed = check("--repair")
    assert not ok and "Not repaired, because the tag is frozen" in printed and "not repaired: 2" in printed
    assert kinds(printed.split("Not repaired")[1]) == ["areas", "number of IOVs"]
    assert present(api) == before
    assert GlobalTag.objects.get(name="tag").revision == 9 and 9 in known()
    assert check("--tag", "other")[0] and not check("--tag", "tag")[0]


def test_only_one_tag(history):
    for name in history:
        sql(INSERT, name)
    ok, printed = check("--tag", "tag", "--repair")
    assert ok and kinds(printed) == ["areas", "number of IOVs"]
    assert history[0] in printed and history[1] not in printed
    assert history[1] in check()[1] and history[0] not in check()[1]
    assert "There is no global tag 'nothing'." in check("--tag", "nothing")[1]
