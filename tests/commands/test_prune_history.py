"""manage.py prune_history: which revisions it drops, which rows it deletes, and what stays."""

import re
import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import GlobalTagNotFoundError, RevisionPrunedError
from cdb_rest.history.changes import read_change
from cdb_rest.history.contents import past_iovs, past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.models import (
    DeletedGlobalTag,
    GlobalTag,
    GlobalTagChange,
    PayloadIOV,
    PayloadIOVHistory,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
    PayloadType,
)
from cdb_rest.services import global_tags, insertion, payload_iovs, payload_lists, pruning, reverting
from cdb_rest.services.history_check import find_history_faults

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _payload_types():
    for name in ("Gain", "Noise"):
        PayloadType.objects.create(name=name)


def prune(*arguments):
    out = StringIO()
    call_command("prune_history", *arguments, stdout=out)
    return out.getvalue()


def make_tag(name="tag"):
    global_tags.create_global_tag(name=name, status="unlocked")


def insert(tag, since, url, kind="Gain"):
    """A row with an open end, which replaces all later ones."""
    row = {"global_tag": tag, "payload_type": kind, "payload_url": url, "major_iov": since, "minor_iov": 0}
    insertion.insert_payloads(rows=[row | {"since_only": False}])


def make_history(name="tag", revisions=6):
    """A tag of which each revision from 2 on replaces the only payload."""
    make_tag(name)
    for number in range(2, revisions + 1):
        insert(name, 0, f"{name} base {number}")


@transaction.atomic
def contents(tag, revision):
    """All rows of a revision, by payload list."""
    lists = past_lists(find_past(tag, AsOf(revision=revision)))
    rows = past_iovs(lists)
    return [(row["payload_list_id"], row["major_iov"], row["major_iov_end"], row["payload_url"]) for row in rows]


def known(tag):
    """The contents of all revisions of a tag that can be asked for."""
    found = {}
    for revision in GlobalTagChange.objects.filter(global_tag=tag).values_list("revision", flat=True):
        try:
            found[revision] = contents(tag, revision)
        except (RevisionPrunedError, GlobalTagNotFoundError):
            continue
    return found


def numbers(printed):
    """The figures of the last line."""
    found = re.fullmatch(
        r"(?:P|Would p)rune[d]? (\S+) revisions of (\S+) global tags; (?:would )?delete[d]? (\S+) rows of the history of IOVs, "
        r"(\S+) versions of payload lists, (\S+) memberships of payload lists and (\S+) deleted tags \(\d+\.\d s\)\.\n",
        printed,
    )
    return tuple(map(int, found.groups()))


def rows_of_history():
    tables = (PayloadIOVHistory, PayloadListVersion, PayloadListMembership, DeletedGlobalTag)
    return [table.objects.count() for table in tables]


def test_the_newest_revisions_stay():
    make_history(revisions=6)
    before = known("tag")
    assert set(before) == {1, 2, 3, 4, 5, 6}
    printed = prune("--keep", "2")
    assert known("tag") == {revision: before[revision] for revision in (5, 6)}
    # Rows of revisions 2 to 4 were superseded, and the versions 1 to 3 of the list belong to them.
    assert numbers(printed) == (4, 1, 3, 3, 0, 0)
    assert numbers(prune("--keep", "2")) == (0, 0, 0, 0, 0, 0)


def test_a_pruned_revision_is_gone_and_the_present_is_not(api):
    make_history(revisions=4)
    path = "payloadiovs/?gtName=tag&majorIOV=3&minorIOV=0"
    now = api.get(path).ok()
    assert [row[1] for row in api.get(f"{path}&rev=3").ok()] == ["tag base 3"]
    prune("--keep", "1")
    api.get(f"{path}&rev=3").error(410, "revision_pruned")
    assert api.get(path).ok() == now == api.get(f"{path}&rev=4").ok()
    assert PayloadIOVHistory.objects.count() == 0


def test_the_state_at_the_date_stays():
    make_history(revisions=5)
    before = known("tag")
    third = GlobalTagChange.objects.get(revision=3).created
    prune("--before", (third + timedelta(microseconds=1)).isoformat())
    assert find_past("tag", AsOf(time=third + timedelta(microseconds=1))).revision == 3
    assert known("tag") == {revision: before[revision] for revision in (3, 4, 5)}
    prune("--before", "2100-01-01")
    assert known("tag") == {5: before[5]}


def test_only_the_tags_that_match_as_a_whole():
    for name in ("run24", "run24-test", "other"):
        make_history(name, revisions=3)
    assert numbers(prune("--keep", "1", "--tag", "run[0-9]+"))[:2] == (2, 1)
    assert set(known("run24")) == {3}
    assert set(known("run24-test")) == set(known("other")) == {1, 2, 3}


def test_a_deleted_tag_leaves_nothing_but_its_log():
    make_history("gone", revisions=4)
    global_tags.delete_global_tag(name="gone")
    assert set(known("gone")) == {1, 2, 3, 4}
    assert all(rows_of_history())
    prune("--before", "2100-01-01", "--tag", "g.*")
    assert known("gone") == {}
    assert rows_of_history() == [0, 0, 0, 0]
    assert GlobalTagChange.objects.filter(global_tag="gone").count() == 5


def test_a_later_tag_of_the_same_name_keeps_its_own_revisions():
    make_history("tag", revisions=3)
    global_tags.delete_global_tag(name="tag")
    make_tag()
    insert("tag", 0, "new")
    before = known("tag")
    assert set(before) == {1, 2, 3, 5, 6}
    prune("--keep", "4")
    assert known("tag") == {revision: before[revision] for revision in (3, 5, 6)}
    prune("--keep", "3")
    assert known("tag") == {revision: before[revision] for revision in (5, 6)}
    assert DeletedGlobalTag.objects.count() == 0


def test_a_frozen_tag_keeps_the_revision_at_which_it_was_frozen():
    make_history(revisions=3)
    global_tags.change_status(name="tag", status="frozen")
    before = known("tag")
    prune("--before", "2100-01-01")
    assert known("tag") == {4: before[4]}
    # A restoration does not give a frozen tag a revision, but a log of other origin may have some after the freeze.
    copy = GlobalTagChange.objects.get(revision=4)
    GlobalTagChange.objects.create(
        **{field.name: getattr(copy, field.name) for field in copy._meta.fields if field.name != "id"}
        | {"revision": 5, "number": copy.number + 1}
    )
    prune("--keep", "1")
    assert set(known("tag")) == {4, 5}


def test_a_list_keeps_the_versions_that_another_tag_needs():
    make_tag("one")
    make_tag("two")
    insert("one", 0, "first")
    insert("one", 0, "second")
    moved = PayloadList.objects.get().name
    payload_lists.attach_payload_list(global_tag="two", payload_list=moved)
    insert("two", 0, "third")
    insert("two", 0, "fourth")
    before = known("two")
    assert [rows[0][3] for _, rows in sorted(known("one").items()) if rows] == ["first", "second"]
    prune("--keep", "1", "--tag", "one")
    assert known("two") == before and set(known("one")) == {4}
    # "first" was needed by no revision of the other tag, and "second" is.
    urls = PayloadIOVHistory.objects.filter(row_start=None).values_list("payload_url", flat=True)
    assert set(urls) == {"second", "third"}
    assert PayloadListMembership.objects.filter(removed_in__isnull=False).count() == 0


def test_the_rows_of_detached_periods_are_not_needed():
    make_tag()
    made = payload_lists.create_payload_list(payload_type="Gain").name
    for url in ("a", "b", "c"):
        columns = {"payload_url": url, "major_iov": 0, "minor_iov": 0}
        iov = payload_iovs.create_payload_iov(values=columns)
        payload_iovs.attach_payload_iov(payload_list=made, iov_id=iov.id)
    payload_lists.attach_payload_list(global_tag="tag", payload_list=made)
    insert("tag", 0, "d")
    before = known("tag")
    assert numbers(prune("--keep", "10")) == (0, 0, 2, 2, 0, 0)
    assert known("tag") == before


def test_the_documents_of_changes_that_stay_do_not_change():
    make_history(revisions=6)
    insert("tag", 5, "cuts")
    insert("tag", 0, "noise", kind="Noise")

    def document(revision):
        before, after, groups = read_change(GlobalTagChange.objects.get(revision=revision))
        return before, after, [(side, list(rows)) for side, rows in groups]

    with transaction.atomic():
        was = {revision: document(revision) for revision in range(1, 9)}
    prune("--keep", "4")
    with transaction.atomic():
        assert {revision: document(revision) for revision in (6, 7, 8)} == {
            revision: was[revision] for revision in (6, 7, 8)
        }
        # The state before revision 5 is needed for this.
        with pytest.raises(RevisionPrunedError):
            document(5)


def test_a_dry_run_counts_and_changes_nothing():
    make_history(revisions=6)
    before, rows = known("tag"), rows_of_history()
    counted = prune("--keep", "2", "--dry-run")
    assert (known("tag"), rows_of_history()) == (before, rows)
    assert counted.startswith("Would prune")
    assert numbers(counted) == numbers(prune("--keep", "2"))


@pytest.mark.parametrize("batch", [1, 2, 3, 1000])
def test_batches_of_any_size_leave_the_same(batch):
    make_history("one", revisions=7)
    make_history("two", revisions=4)
    global_tags.delete_global_tag(name="two")
    before = known("one")
    pruned = pruning.prune_history(limit=pruning.Limit(keep=2), batch=batch)
    assert (pruned.revisions, pruned.tags, pruned.memberships, pruned.deleted_tags) == (5 + 3, 2, 0, 0)
    assert known("one") == {revision: before[revision] for revision in (6, 7)}
    assert PayloadIOVHistory.objects.count() == 2 and PayloadListVersion.objects.count() == 3


def test_rows_of_a_history_that_was_dropped_are_deleted():
    make_history("seeded", revisions=4)
    global_tags.delete_global_tag(name="seeded", keep_history=False)
    assert PayloadIOVHistory.objects.exists()
    prune("--keep", "1000")
    assert rows_of_history() == [0, 0, 0, 0]


@pytest.mark.parametrize("steps", range(12))
def test_after_an_interruption_no_revision_has_history_without_its_rows(monkeypatch, steps):
    make_history("tag", revisions=6)
    make_history("gone", revisions=4)
    global_tags.delete_global_tag(name="gone")
    before = {name: known(name) for name in ("tag", "gone")}
    left = steps

    def interrupted(real):
        def execute(**values):
            nonlocal left
            left -= 1
            if left < 0:
                raise DatabaseError("interrupted")
            return real(**values)

        return execute

    for name in ("_drop_history", "_execute"):
        monkeypatch.setattr(pruning, name, interrupted(getattr(pruning, name)))
    limit = pruning.Limit(keep=2)
    with pytest.raises(DatabaseError):
        pruning.prune_history(limit=limit, batch=2)
    for name in ("tag", "gone"):
        assert known(name).items() <= before[name].items()
    monkeypatch.undo()
    pruning.prune_history(limit=limit)
    assert known("tag") == {revision: before["tag"][revision] for revision in (5, 6)}
    assert set(known("gone")) == {4}
    assert PayloadIOVHistory.objects.count() == 2


def test_what_is_written_after_the_needed_versions_were_read_stays(monkeypatch):
    make_history(revisions=4)
    needed, expected = pruning._needed, {}

    def interleaved(lists):
        found = list(needed(lists))
        for revision in (5, 6, 7):
            insert("tag", 0, f"meanwhile {revision}")
            expected[revision] = contents_now()
        return iter(found)

    monkeypatch.setattr(pruning, "_needed", interleaved)
    pruning.prune_history(limit=pruning.Limit(keep=1), batch=2)
    assert {revision: contents("tag", revision) for revision in (5, 6, 7)} == expected
    assert find_history_faults() == []


def test_what_concurrent_writers_add_stays():
    make_history(revisions=3)
    failures, over = [], threading.Event()

    def prune_again_and_again():
        try:
            while not over.is_set():
                pruning.prune_history(limit=pruning.Limit(keep=3), batch=3)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    pruner = threading.Thread(target=prune_again_and_again)
    pruner.start()
    try:
        expected = {}
        for number in range(60):
            insert("tag", number % 7, f"written {number}")
            expected[number + 4] = contents_now()
    finally:
        over.set()
        pruner.join()
    assert not failures
    newest = {revision: expected[revision] for revision in (61, 62, 63)}
    assert {revision: contents("tag", revision) for revision in newest} == newest
    prune("--keep", "3")
    assert known("tag") == newest


def contents_now():
    rows = PayloadIOV.objects.filter(payload_list__global_tag__name="tag").order_by("comb_iov")
    return [(row.payload_list_id, row.major_iov, row.major_iov_end, row.payload_url) for row in rows]


@pytest.mark.parametrize("write", ["revert", "clone"])
def test_a_revision_from_which_a_write_copies_is_left_out(monkeypatch, write):
    """The pruning comes after the write has found the revision, and before it reads the rows."""
    make_history(revisions=4)
    insert("tag", 5, "another")
    before, pruned = contents("tag", 3), []
    module = reverting if write == "revert" else global_tags
    read = module.past_lists

    def prune_meanwhile():
        pruned.append(pruning.prune_history(limit=pruning.Limit(keep=1)).revisions)
        connection.close()

    def interleaved(past):
        pruner = threading.Thread(target=prune_meanwhile)
        pruner.start()
        pruner.join()
        return read(past)

    monkeypatch.setattr(module, "past_lists", interleaved)
    if write == "revert":
        reverting.revert_global_tag(name="tag", revision=3)
    else:
        global_tags.clone_global_tag(source="tag", target="copy", as_of=AsOf(revision=3))
    name = "tag" if write == "revert" else "copy"
    rows = PayloadIOV.objects.filter(payload_list__global_tag__name=name)
    assert list(rows.values_list("payload_url", flat=True)) == [url for *_, url in before]
    # All but the newest one and the one that is read.
    assert pruned == [3]
    monkeypatch.undo()
    assert pruning.prune_history(limit=pruning.Limit(keep=1, pattern="tag")).revisions == (
        2 if write == "revert" else 1
    )
    assert find_history_faults() == []


def test_a_writer_does_not_wait_for_the_deletion():
    """The pruner stops with its rows locked, and another connection writes to the same list."""
    make_history(revisions=5)
    done = []

    def write():
        try:
            insert("tag", 0, "meanwhile")
            done.append(True)
        finally:
            connection.close()

    with transaction.atomic():
        pruning.prune_history(limit=pruning.Limit(keep=1))
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(30)
        assert done
    assert GlobalTag.objects.get().revision == 6
    assert [rows[0][3] for rows in known("tag").values()] == ["tag base 5", "meanwhile"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --before --keep is required"),
        (["--keep", "1", "--before", "2026-01-01"], "not allowed with argument"),
        (["--keep", "0"], "--keep must be at least 1 (got 0)"),
        (["--before", "yesterday"], "--before must be a date or time such as"),
        (["--keep", "1", "--tag", "("], "--tag must be a regular expression (got (:"),
    ],
)
def test_wrong_options(arguments, message):
    with pytest.raises(CommandError, match=re.escape(message)):
        prune(*arguments)
