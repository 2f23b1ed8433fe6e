"""Reverting a global tag to a revision: its lists and rows come back, in one change."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cdb_rest.history.contents import past_iovs, past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.maintenance.counts import find_incorrect_counts
from cdb_rest.maintenance.repair import find_faults
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadIOVHistory, PayloadList, PayloadType
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import (
    GlobalTagNotFoundError,
    RevisionNotFoundError,
    RevisionPrunedError,
    TagFrozenError,
    TagLockedError,
)
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.writes import bulk, global_tags, insertion, payload_iovs, payload_lists, payload_types
from cdb_rest.writes.reverting import Reversion, TypeReversion, revert_global_tag
from tests.histories.judge import read_log
from tests.histories.oracle import Log
from tests.writes.concurrency import together

pytestmark = pytest.mark.django_db(transaction=True)

KEY = ("payload_url", "checksum", "size", "extra", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end")


def insert(url, start, end=OPEN, kind="Gain", tag="tag"):
    """Insert a payload from one major to another; returns the new revision."""
    row = {
        "global_tag": tag,
        "payload_type": kind,
        "payload_url": url,
        "checksum": f"sum of {url}",
        "size": 7,
        "extra": "3",
        "major_iov": start,
        "minor_iov": 0,
        "major_iov_end": end,
        "minor_iov_end": OPEN if end == OPEN else 0,
        "since_only": False,
    }
    return insertion.insert_payloads(rows=[row]).revisions[tag]


def contents(tag="tag"):
    """The rows of a tag by payload type."""
    found = PayloadList.objects.filter(global_tag__name=tag).select_related("payload_type")
    return {one.payload_type.name: list(one.payload_iovs.order_by("comb_iov").values_list(*KEY)) for one in found}


def past_contents(revision, tag="tag"):
    """The same at a revision, as the history has it."""
    lists = past_lists(find_past(tag, AsOf(revision=revision)))
    return {one.payload_type: [tuple(row[name] for name in KEY) for row in past_iovs([one])] for one in lists}


def ids(kind="Gain", tag="tag"):
    """The ids of rows by URL and start."""
    rows = PayloadIOV.objects.filter(payload_list__global_tag__name=tag, payload_list__payload_type__name=kind)
    return {(url, start): iov_id for iov_id, url, start in rows.values_list("id", "payload_url", "major_iov")}


def name_of(kind="Gain", tag="tag"):
    return PayloadList.objects.get(global_tag__name=tag, payload_type__name=kind).name


def revision(tag="tag"):
    return GlobalTag.objects.get(name=tag).revision


def revert(to, expected, tag="tag"):
    """Revert the tag, with a dry run before, and hold contents, counts and history against what they should be."""
    before, changes = past_contents(revision(tag), tag), GlobalTagChange.objects.count()
    earlier = {change.revision for change in GlobalTagChange.objects.filter(global_tag=tag).exclude(action="delete")}
    remembered = {number: past_contents(number, tag) for number in earlier}
    tried = revert_global_tag(name=tag, revision=to, dry_run=True)
    assert tried.revision is None and contents(tag) == before
    assert GlobalTagChange.objects.count() == changes
    done = revert_global_tag(name=tag, revision=to)
    assert contents(tag) == expected == past_contents(to, tag) == past_contents(revision(tag), tag)
    assert [(one.payload_type, one.detached, one.is_created, one.removed, one.added) for one in done.types] == [
        (one.payload_type, one.detached, one.is_created, one.removed, one.added) for one in tried.types
    ]
    assert {number: past_contents(number, tag) for number in earlier} == remembered
    assert find_faults() == [] and find_incorrect_counts() == []
    if done.types:
        change = GlobalTagChange.objects.get(global_tag=tag, revision=done.revision)
        assert (change.action, change.revision) == ("revert", revision(tag))
        assert change.payload_iovs_before == sum(one.removed for one in done.types)
        assert change.payload_iovs_after == sum(one.added for one in done.types)
        log = Log(read_log())
        rebuilt = log.rebuild(tag, done.revision)
        assert len(rebuilt["rows"]) == sum(map(len, expected.values()))
        [read] = [one for one in read_log() if (one["global_tag"], one["revision"]) == (tag, done.revision)]
        assert len(read["before"].get("payload_iovs", [])) == change.payload_iovs_before
        assert len(read["after"].get("payload_iovs", [])) == change.payload_iovs_after
    else:
        assert done.revision is None and GlobalTagChange.objects.count() == changes
    return done


@pytest.fixture
def tag():
    """The tag `tag`; revision 2 has one list of the type Gain with two IOVs."""
    global_tags.create_global_tag(name="tag", status="unlocked")
    for name in ("Gain", "Noise"):
        payload_types.create_payload_type(name=name)
    insert("a", 0, 10)
    return insert("b", 10)


def test_cut_moved_and_detached_rows_come_back_in_place(tag):
    expected, known = contents(), ids()
    # It cuts the end of a and the start of b.
    insert("c", 5, 15)
    # It detaches what began later.
    insert("d", 12)
    done = revert(tag, expected)
    assert ids() == known
    assert done.types == [TypeReversion("Gain", None, None, False, removed=3, added=2)]
    assert set(PayloadIOV.objects.filter(payload_list=None).values_list("payload_url", flat=True)) == {"c", "d"}


def test_rows_that_exchange_their_starts_come_back(tag):
    """The start of each row is taken by another one before, whatever the order."""
    payload_list = PayloadList.objects.get()
    insert("c", 20)
    insert("d", 30)
    wanted, expected, known = revision(), contents(), ids()
    iovs = {iov.payload_url: iov for iov in PayloadIOV.objects.filter(payload_list=payload_list)}
    # Each is attached again where the next one was.
    for url in "abcd":
        payload_iovs.delete_payload_iov(
            global_tag="tag",
            payload_type="Gain",
            start=Moment(iovs[url].major_iov, 0),
            end=Moment(iovs[url].major_iov_end, iovs[url].minor_iov_end),
        )
    for number, url in enumerate("bcda"):
        iov = PayloadIOV(payload_list=None, **{name: getattr(iovs[url], name) for name in KEY})
        iov.id, iov.major_iov, iov.major_iov_end, iov.minor_iov_end = iovs[url].id, number * 10, number * 10 + 10, 0
        iov.save(force_insert=True)
        payload_iovs.attach_payload_iov(payload_list=payload_list.name, iov_id=iov.id)
    assert sorted(ids().values()) == sorted(known.values()) and ids() != known
    revert(wanted, expected)
    assert ids() == known
    assert not PayloadIOV.objects.filter(payload_list=None).exists()


def test_only_rows_that_differ_change(tag):
    unchanged = PayloadIOV.objects.get(payload_url="a")
    kept = PayloadIOV.objects.filter(id=unchanged.id).values().get()
    insert("c", 20)
    wanted, expected = revision(), contents()
    insert("d", 25)
    done = revert(wanted, expected)
    assert (done.types[0].removed, done.types[0].added) == (2, 1)
    assert PayloadIOV.objects.filter(id=unchanged.id).values().get() == kept


def test_a_deleted_row_comes_back_with_its_id(tag):
    expected, known = contents(), ids()
    payload_iovs.delete_payload_iov(global_tag="tag", payload_type="Gain", start=Moment(0, 0), end=Moment(10, 0))
    done = revert(tag, expected)
    assert ids() == known
    assert (done.types[0].removed, done.types[0].added) == (0, 1)


def test_a_stolen_row_is_copied(tag):
    expected, known = contents(), ids()
    global_tags.create_global_tag(name="thief", status="unlocked")
    other = payload_lists.create_payload_list(payload_type="Gain")
    payload_lists.attach_payload_list(global_tag="thief", payload_list=other.name)
    payload_iovs.attach_payload_iov(payload_list=other.name, iov_id=known["a", 0])
    before = contents("thief"), revision("thief")
    revert(tag, expected)
    assert (contents("thief"), revision("thief")) == before
    assert ids()["b", 10] == known["b", 10] and ids()["a", 0] != known["a", 0]


def test_a_copy_stays_when_the_row_itself_could_come_back(tag):
    """The rows are the same, so there is nothing to change."""
    expected, known = contents(), ids()
    other = payload_lists.create_payload_list(payload_type="Gain")
    payload_iovs.attach_payload_iov(payload_list=other.name, iov_id=known["a", 0])
    revert(tag, expected)
    copy = ids()["a", 0]
    columns = {"payload_url": "x", "major_iov": 0, "minor_iov": 0, "major_iov_end": 50, "minor_iov_end": 0}
    payload_iovs.attach_payload_iov(payload_list=other.name, iov_id=payload_iovs.create_payload_iov(values=columns).id)
    assert PayloadIOV.objects.get(id=known["a", 0]).payload_list is None
    assert revert(tag, expected).types == []
    assert ids()["a", 0] == copy != known["a", 0]


def test_a_row_that_stands_for_its_former_rest_stays(tag):
    """Two parts of a split row have the same payload, so one may be where the other was."""
    known = ids()
    split = insert("c", 3, 6)
    expected = contents()
    revert(tag, past_contents(tag))
    # It moves the whole row to where its second part was.
    insert("d", 0, 6)
    assert ids()["a", 6] == known["a", 0]
    revert(split, expected)
    assert ids()["a", 6] == known["a", 0] != ids()["a", 0]


def test_a_row_whose_payload_another_program_changed_is_not_taken(tag):
    expected, known = contents(), ids()
    payload_iovs.delete_payload_iov(global_tag="tag", payload_type="Gain", start=Moment(0, 0), end=Moment(10, 0))
    PayloadIOV.objects.create(id=known["a", 0], payload_url="another", major_iov=0, minor_iov=0)
    revert(tag, expected)
    assert ids()["a", 0] != known["a", 0]


def test_a_detached_list_comes_back(tag):
    """It and its rows have changed meanwhile, as a detached list."""
    expected, name, known = contents(), name_of(), ids()
    spare = payload_lists.create_payload_list(payload_type="Gain")
    payload_lists.attach_payload_list(global_tag="tag", payload_list=spare.name)
    insert("other", 3)
    columns = {"major_iov": 4, "minor_iov": 0, "major_iov_end": 6, "minor_iov_end": 0}
    bulk.insert_payload_iovs(rows=[{"payload_list": name, "payload_url": "x", **columns}])
    done = revert(tag, expected)
    assert done.types == [TypeReversion("Gain", spare.name, name, False, removed=1, added=2)]
    assert name_of() == name and ids() == known
    assert PayloadList.objects.get(name=spare.name).iov_count == 1


def test_a_detached_list_that_did_not_change_comes_back_as_it_is(tag):
    expected, name = contents(), name_of()
    spare = payload_lists.create_payload_list(payload_type="Gain")
    payload_lists.attach_payload_list(global_tag="tag", payload_list=spare.name)
    version, stored = PayloadList.objects.get(name=name).version, PayloadIOVHistory.objects.count()
    revert(tag, expected)
    assert PayloadList.objects.get(global_tag__name="tag").version == version
    assert PayloadIOVHistory.objects.count() == stored


def test_a_stolen_list_is_replaced_by_a_new_one(tag):
    expected, name, known = contents(), name_of(), ids()
    global_tags.create_global_tag(name="thief", status="unlocked")
    payload_lists.attach_payload_list(global_tag="thief", payload_list=name)
    insert("later", 10, tag="thief")
    stolen = contents("thief"), revision("thief")
    done = revert(tag, expected)
    assert (contents("thief"), revision("thief")) == stolen
    [change] = done.types
    assert change == TypeReversion("Gain", None, name_of(), True, removed=0, added=2) and name_of() != name
    # The thief has detached b, so it can come back itself.
    assert ids()["b", 10] == known["b", 10] and ids()["a", 0] != known["a", 0]
    assert change.attached == f"Gain_{PayloadList.objects.get(global_tag__name='tag').id}"
    # It cannot come back now either, but its rows are there.
    assert revert(tag, expected).types == []


def test_a_deleted_list_is_replaced_by_a_new_one(tag):
    """With its type, which was deleted as well."""
    expected, known = contents(), ids()
    for start, end in ((Moment(0, 0), Moment(10, 0)), (Moment(10, 0), Moment(OPEN, OPEN))):
        payload_iovs.delete_payload_iov(global_tag="tag", payload_type="Gain", start=start, end=end)
    payload_lists.delete_payload_list(name=name_of())
    payload_types.delete_payload_type(name="Gain")
    done = revert(tag, expected)
    assert done.types == [TypeReversion("Gain", None, name_of(), True, removed=0, added=2)]
    assert ids() == known and PayloadType.objects.filter(name="Gain").exists()


def test_an_empty_deleted_list_is_replaced_by_a_new_one(tag):
    spare = payload_lists.create_payload_list(payload_type="Noise")
    payload_lists.attach_payload_list(global_tag="tag", payload_list=spare.name)
    wanted, expected = revision(), contents()
    payload_lists.delete_payload_list(name=spare.name)
    assert expected["Noise"] == []
    assert revert(wanted, expected).types == [TypeReversion("Noise", None, name_of("Noise"), True, 0, 0)]


def test_lists_of_other_types_are_detached(tag):
    expected = contents()
    insert("n", 0, kind="Noise")
    name = name_of("Noise")
    done = revert(tag, expected)
    assert done.types == [TypeReversion("Noise", name, None, False, removed=1, added=0)]
    assert PayloadList.objects.get(name=name).global_tag is None


def test_to_the_empty_tag_and_back(tag):
    full = contents()
    to_empty = revert(1, {})
    assert to_empty.types[0].detached and not PayloadIOV.objects.filter(payload_list=None).exists()
    back = revert(to_empty.revision - 1, full)
    assert back.types == [TypeReversion("Gain", None, to_empty.types[0].detached, False, removed=0, added=2)]


def test_a_reversion_can_be_reverted(tag):
    first = contents()
    insert("c", 5, 15)
    insert("n", 0, kind="Noise")
    second, known = contents(), ids()
    latest = revision()
    revert(tag, first)
    revert(latest, second)
    assert ids() == known
    revert(tag, first)
    revert(revision() - 1, second)


def test_a_namesake_of_a_deleted_tag_gets_the_rows_of_the_former_one(tag):
    expected, known = contents(), ids()
    global_tags.delete_global_tag(name="tag")
    global_tags.create_global_tag(name="tag", status="unlocked")
    revert(tag, expected)
    assert ids() == known
    with pytest.raises(GlobalTagNotFoundError):
        revert_global_tag(name="tag", revision=tag + 1)


def test_a_row_that_moved_between_lists_of_the_tag_comes_back(tag):
    insert("n", 0, 5, kind="Noise")
    wanted, expected, known = revision(), contents(), ids()
    payload_iovs.attach_payload_iov(payload_list=name_of("Noise"), iov_id=known["b", 10])
    moved, latest = contents(), revision()
    revert(wanted, expected)
    revert(latest, moved)


@pytest.mark.parametrize(("status", "error"), [("locked", TagLockedError), ("frozen", TagFrozenError)])
def test_the_status_protects_the_tag(tag, status, error):
    insert("c", 5)
    global_tags.change_status(name="tag", status=status)
    before = contents(), revision(), PayloadIOVHistory.objects.count()
    for dry_run in (True, False):
        with pytest.raises(error, match="it cannot be reverted"):
            revert_global_tag(name="tag", revision=tag, dry_run=dry_run)
    assert (contents(), revision(), PayloadIOVHistory.objects.count()) == before
    # Nothing would change.
    assert revert(revision() - 1, contents()).types == []


def test_the_status_does_not_come_back(tag):
    global_tags.change_status(name="tag", status="locked")
    wanted, expected = revision(), contents()
    global_tags.change_status(name="tag", status="unlocked")
    insert("c", 5)
    revert(wanted, expected)
    assert GlobalTag.objects.get().status.name == "unlocked"


def test_a_revision_that_cannot_be_read_is_refused(tag):
    insert("c", 5)
    GlobalTagChange.objects.filter(revision=tag).update(has_history=False)
    with pytest.raises(RevisionPrunedError):
        revert_global_tag(name="tag", revision=tag)
    with pytest.raises(RevisionNotFoundError):
        revert_global_tag(name="tag", revision=99)
    with pytest.raises(GlobalTagNotFoundError):
        revert_global_tag(name="unknown", revision=1)


def test_the_same_contents_in_another_version_are_no_change(tag):
    """The list has changed since and has the rows of then again."""
    expected = contents()
    insert("c", 5)
    revert(tag, expected)
    assert PayloadList.objects.get().version > 2
    assert revert(tag, expected).types == []


def test_the_rows_of_lists_that_did_not_change_are_not_read(tag):
    wanted = insert("n", 0, kind="Noise")
    changed = PayloadList.objects.get(payload_type__name="Gain").id
    insert("c", 5)
    with CaptureQueriesContext(connection) as queries:
        assert len(revert_global_tag(name="tag", revision=wanted).types) == 1
    read = [
        query["sql"] for query in queries if 'FROM "PayloadIOV"' in query["sql"] and "payload_list_id" in query["sql"]
    ]
    assert read and all(re.search(rf"\b{changed}\b", sql) or "IS NULL" in sql for sql in read)
    other = PayloadList.objects.get(payload_type__name="Noise").id
    assert not [sql for sql in read if re.search(rf"= {other}\b|ARRAY\[{other}\]", sql)]


@pytest.mark.parametrize("rows", [10, 1000])
def test_the_number_of_statements_does_not_depend_on_the_rows(tag, rows):
    columns = {"minor_iov": 0, "minor_iov_end": 0, "payload_url": "u", "payload_list": name_of()}
    bulk.insert_payload_iovs(
        rows=[columns | {"major_iov": major, "major_iov_end": major + 1} for major in range(100, 100 + rows)]
    )
    latest, full, known = revision(), contents(), ids()
    revert_global_tag(name="tag", revision=tag)
    # So one half comes back from the detached rows, and the other half is inserted.
    PayloadIOV.objects.filter(payload_list=None, major_iov__lt=100 + rows // 2).delete()
    with CaptureQueriesContext(connection) as queries:
        done = revert_global_tag(name="tag", revision=latest)
    assert contents() == full and ids() == known and done.types[0].added >= rows
    assert len(queries) == 20, "\n".join(query["sql"][:200] for query in queries)


def test_reversions_that_bring_back_the_same_deleted_row(tag):
    """Both tags had it, one after the other. One gets its id, the other one a new one."""
    tags = ["tag", *(f"tag{number}" for number in range(4))]
    wanted = {"tag": tag}
    iov_id = ids()["a", 0]
    for name in tags[1:]:
        global_tags.create_global_tag(name=name, status="unlocked")
        made = payload_lists.create_payload_list(payload_type="Gain")
        payload_lists.attach_payload_list(global_tag=name, payload_list=made.name)
        payload_iovs.attach_payload_iov(payload_list=made.name, iov_id=iov_id)
        wanted[name] = revision(name)
    expected = {name: past_contents(wanted[name], name) for name in tags}
    payload_iovs.delete_payload_iov(global_tag=tags[-1], payload_type="Gain", start=Moment(0, 0), end=Moment(10, 0))
    results = together([lambda name=name: revert_global_tag(name=name, revision=wanted[name]) for name in tags])
    assert all(isinstance(result, Reversion) for result in results), results
    assert {name: contents(name) for name in tags} == expected
    assert [ids(tag=name)["a", 0] for name in tags].count(iov_id) == 1
    assert find_faults() == []


def test_reversions_of_one_tag_queue(tag):
    insert("c", 5)
    expected = contents()
    latest = revision()
    results = together([lambda to=to: revert_global_tag(name="tag", revision=to) for to in [tag, latest] * 6])
    assert all(isinstance(result, Reversion) for result in results), results
    revisions = [result.revision for result in results if result.revision]
    assert sorted(revisions) == list(range(latest + 1, latest + 1 + len(revisions)))
    for number in range(latest + 1, latest + 1 + len(revisions)):
        assert past_contents(number) in (expected, past_contents(tag))
    assert find_faults() == []
