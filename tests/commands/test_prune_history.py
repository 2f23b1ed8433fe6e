"""manage.py prune_history: which revisions it drops, which rows it deletes, and what stays."""

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.db import transaction

from cdb_rest.history.changes import read_change
from cdb_rest.history.revisions import find_past
from cdb_rest.maintenance import pruning
from cdb_rest.models import (
    DeletedGlobalTag,
    GlobalTagChange,
    PayloadIOVHistory,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
)
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import RevisionPrunedError
from cdb_rest.writes import global_tags, payload_iovs, payload_lists
from tests.commands.pruning import insert, known, make_history, make_tag, numbers, prune

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payload_types")]


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the arguments --before --keep is required"),
        (["--keep", "1", "--before", "2026-01-01"], "not allowed with argument"),
        (["--keep", "0"], "--keep must be at least 1 (got 0)"),
        (["--before", "yesterday"], "--before must be a date or time such as"),
        (["--keep", "1", "--tag", "("], "--tag must be a regular expression of RE2 (got (;"),
    ],
)
def test_wrong_options(arguments, message):
    with pytest.raises(CommandError, match=re.escape(message)):
        prune(*arguments)
