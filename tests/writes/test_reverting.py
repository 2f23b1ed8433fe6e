"""Reverting a global tag to a revision: its lists and rows come back, in one change."""

import pytest

from cdb_rest.history.contents import find_past, iovs_of, past_lists
from cdb_rest.maintenance.repair import find_faults, find_incorrect_counts
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import OPEN, Moment
from cdb_rest.writes import bulk, global_tags, insertion, payload_iovs, payload_lists, payload_types
from cdb_rest.writes.reverting import TypeReversion, revert_global_tag
from tests.histories.judge import read_log
from tests.histories.oracle import Log

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
    return {one.payload_type: [tuple(row[name] for name in KEY) for row in iovs_of([one])] for one in lists}


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
