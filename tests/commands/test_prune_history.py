"""manage.py prune_history: which revisions it drops, which rows it deletes, and what stays."""

import re
from datetime import timedelta

import pytest
from django.core.management import CommandError

from cdb_rest.history.revisions import find_past
from cdb_rest.models import (
    DeletedGlobalTag,
    GlobalTagChange,
    PayloadIOVHistory,
    PayloadListMembership,
    PayloadListVersion,
)
from cdb_rest.rules.as_of import AsOf
from cdb_rest.writes import global_tags
from tests.commands.pruning import known, make_history, numbers, prune

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


def test_a_deleted_tag_leaves_nothing_but_its_log():
    make_history("gone", revisions=4)
    global_tags.delete_global_tag(name="gone")
    assert set(known("gone")) == {1, 2, 3, 4}
    assert all(rows_of_history())
    prune("--before", "2100-01-01", "--tag", "g.*")
    assert known("gone") == {}
    assert rows_of_history() == [0, 0, 0, 0]
    assert GlobalTagChange.objects.filter(global_tag="gone").count() == 5


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


def test_a_dry_run_counts_and_changes_nothing():
    make_history(revisions=6)
    before, rows = known("tag"), rows_of_history()
    counted = prune("--keep", "2", "--dry-run")
    assert (known("tag"), rows_of_history()) == (before, rows)
    assert counted.startswith("Would prune")
    assert numbers(counted) == numbers(prune("--keep", "2"))


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
