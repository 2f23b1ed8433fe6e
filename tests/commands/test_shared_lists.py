"""Commands over payload lists that share rows: prune_history, check_history and check_intervals, and what their repairs leave."""

import re

import pytest

from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOVHistory, PayloadList, PayloadListVersion
from cdb_rest.rules.as_of import AsOf
from cdb_rest.writes import global_tags
from tests.commands.helpers import attempt, insert, sql

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payload_types")]
ROWS, TAGS = "two versions|number of IOVs|areas|version|base", "membership|two tags|status|newest change"
KIND = rf"^({ROWS}|{TAGS}|empty|overlap|incorrect count)  "


def faults(command, *arguments):
    """The kinds of faults that a check prints."""
    return re.findall(KIND, attempt(command, *arguments)[1], re.MULTILINE)


def check_clean():
    for command in ("check_history", "check_intervals"):
        ok, printed = attempt(command)
        assert ok, printed


def clone(source, target, revision=None):
    global_tags.clone_global_tag(source=source, target=target, as_of=revision and AsOf(revision=revision))


@pytest.fixture
def base():
    """A tag with two lists, of which rows were cut, split and replaced."""
    global_tags.create_global_tag(name="base", status="unlocked")
    for since, until in ((0, 10), (10, 20), (20, None), (4, 15), (6, 7)):
        insert("base", since, until)
    insert("base", 0, None, "Noise")


def list_of(tag, kind="Gain"):
    return PayloadList.objects.get(global_tag__name=tag, payload_type__name=kind)


def answers(api, tag, *more):
    """What a tag answers: lookups, with the validity of each payload, the nested document and the export."""
    lookups = (f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=0" for major in range(0, 32, 3))
    paths = [*lookups, f"gt/{GlobalTag.objects.get(name=tag).id}", f"global-tags/{tag}/export", *more]
    return {path: without_times(api.get(path).content) for path in paths}


def without_times(content):
    return re.sub(rb'"updated": ?"[^"]*"', b"", content)


def lookups(api, tag, revision=None):
    """Which payloads are valid at each moment, now or at a revision."""
    past = "" if revision is None else f"&rev={revision}"
    return [
        [row[:2] for row in api.get(f"payloadiovs/?gtName={tag}&majorIOV={major}&minorIOV=0&strict=1{past}").ok()]
        for major in range(0, 32, 2)
    ]


def test_many_clones_keep_all_that_they_answer_when_their_base_is_deleted_and_everything_is_pruned(api, base):
    for number in range(25):
        # Some clones are of the past, some of other clones.
        source, revision = (("base", None), ("base", 4), (f"clone{number // 2}", None))[number % 3 if number else 0]
        clone(source, f"clone{number}", revision)
        if number % 10 == 4:
            insert("base", number)
        if number % 10 == 7:
            insert(f"clone{number}", number, number + 5)
    tags = sorted(GlobalTag.objects.exclude(name="base").values_list("name", flat=True))
    before = {tag: answers(api, tag) for tag in tags}
    check_clean()
    global_tags.delete_global_tag(name="base")
    gone = [tags.pop(), tags.pop(0)]
    for number, tag in enumerate(gone):
        global_tags.delete_global_tag(name=tag, keep_history=bool(number))
    assert {tag: answers(api, tag) for tag in tags} == {tag: before[tag] for tag in tags}
    attempt("prune_history", "--before", "2100-01-01")
    check_clean()
    assert {tag: answers(api, tag) for tag in tags} == {tag: before[tag] for tag in tags}
    for tag in tags:
        insert(tag, 9, 12)
        global_tags.delete_global_tag(name=tag)
    check_clean()
    attempt("prune_history", "--before", "2100-01-01")
    # One run frees the versions of the clones and the rows of the base that they shared.
    assert not PayloadIOVHistory.objects.exists() and not PayloadListVersion.objects.exists()


def test_a_check_of_a_clone_finds_the_faults_of_its_deleted_base(base):
    clone("base", "copy")
    base_list = list_of("base")
    global_tags.delete_global_tag(name="base")
    check_clean()
    sql('DELETE FROM "PayloadIOVHistory" WHERE payload_list_id = %s AND major_iov = 6', base_list.id)
    for arguments in ((), ("--tag", "copy"), ("--tag", "base")):
        assert "number of IOVs" in faults("check_history", *arguments)
    assert faults("check_intervals") == ["incorrect count"] * 2


# What another program does to the rows of the base or of the clone, and the faults that it causes.
RAW = """
    INSERT INTO "PayloadIOV" (payload_url, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id)
    SELECT 'raw', 16, 0, 18, 0, %s
"""


DELETE = 'DELETE FROM "PayloadIOV" WHERE payload_list_id = %s AND major_iov = 6'
MOVE = 'UPDATE "PayloadIOV" SET major_iov = 21 WHERE payload_list_id = %s AND major_iov = 20'


@pytest.mark.parametrize(
    ("statement", "moved_on", "expected"),
    [
        (RAW, False, ["areas", "number of IOVs"]),
        (RAW, True, ["areas", "number of IOVs"]),
        (DELETE, False, ["number of IOVs"]),
        (DELETE, True, ["number of IOVs"]),
        (MOVE, False, ["areas"]),
    ],
)
def test_the_history_of_a_base_is_repaired_and_its_clones_keep_what_they_answer(
    api, base, statement, moved_on, expected
):
    for tag in ("copy", "written", "deleted"):
        clone("base", tag)
    insert("written", 25)
    insert("written", 26)
    global_tags.delete_global_tag(name="deleted")
    if moved_on:
        insert("base", 28)
    first = lookups(api, "written", 2)
    sql(statement, list_of("base").id)
    # Rows of the base in its past cannot be told from those that were always there.
    before = {tag: lookups(api, tag) for tag in ("base", "copy", "written")}
    assert faults("check_history") == expected
    for arguments in (["--repair"], []):
        ok, printed = attempt("check_history", *arguments)
        assert ok, printed
    assert {tag: lookups(api, tag) for tag in before} == before
    assert lookups(api, "written", 2) == first
    assert list_of("copy").base_list_id is None and list_of("copy", "Noise").base_list_id is not None
    # The past of the deleted clone was in the rows that cannot be trusted.
    assert not GlobalTagChange.objects.filter(global_tag="deleted", has_history=True).exclude(action="delete").exists()
    assert GlobalTag.objects.get(name="written").revision == 3
    insert("copy", 3)
    insert("base", 3)
    assert attempt("check_history")[0]


def test_a_list_that_shares_other_rows_than_recorded(base):
    clone("base", "copy")
    sql('UPDATE "PayloadList" SET base_version = 3 WHERE id = %s', list_of("copy").id)
    sql('UPDATE "PayloadList" SET iov_count = 0 WHERE id = %s', list_of("copy", "Noise").id)
    assert faults("check_history") == ["base"]
    assert faults("check_intervals").count("incorrect count") == 3
    ok, printed = attempt("check_history", "--repair")
    assert ok, printed
    check_clean()
    assert list_of("copy").base_version == 3


def test_intervals_are_repaired_in_a_base_and_in_the_lists_that_share_it(api, build, payload_types):
    payload_list = build.list(build.tag("base"))
    build.iov(payload_list, (0, 0), (15, 0), url="reaches too far")
    build.iov(payload_list, (10, 0), (30, 0), url="hidden")
    build.iov(payload_list, (20, 0), (20, 0), url="empty")
    for tag in ("early", "frozen"):
        clone("base", tag)
    global_tags.change_status(name="frozen", status="frozen")
    # It does not touch the faults, but the base has another version now.
    insert("base", 40)
    clone("base", "late")
    before = {tag: lookups(api, tag) for tag in ("base", "early", "frozen", "late")}
    assert faults("check_intervals") == ["overlap", "overlap", "empty"] * 4
    assert faults("check_intervals", "--global-tag", "early") == ["overlap", "overlap", "empty"]
    assert attempt("check_intervals", "--global-tag", "early", "--repair")[0]
    assert list_of("late").base_list_id == payload_list.id
    assert faults("check_intervals") == ["overlap", "overlap", "empty"] * 3
    ok, printed = attempt("check_intervals", "--repair")
    assert not ok and "Not repaired, because the tag is frozen" in printed
    assert {tag: lookups(api, tag) for tag in before} == before
    assert faults("check_intervals") == ["overlap", "overlap", "empty"]
    assert faults("check_intervals", "--global-tag", "frozen") == ["overlap", "overlap", "empty"]
    assert attempt("check_history")[0]
