"""manage.py prune_history that is interrupted, or that runs beside writes."""

import threading

import pytest
from django.db import DatabaseError, connection, transaction

from cdb_rest.maintenance import pruning
from cdb_rest.maintenance.history_check import find_history_faults
from cdb_rest.models import (
    GlobalTag,
    PayloadIOV,
    PayloadIOVHistory,
)
from cdb_rest.rules.as_of import AsOf
from cdb_rest.writes import global_tags, reverting
from tests.commands.pruning import contents, insert, known, make_history, prune

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payload_types")]


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
