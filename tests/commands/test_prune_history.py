"""manage.py prune_history: which revisions it drops, which rows it deletes, what stays, and interruptions."""

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from cdb_rest.maintenance import pruning
from cdb_rest.models import (
    DeletedGlobalTag,
    PayloadIOVHistory,
    PayloadListMembership,
    PayloadListVersion,
)
from cdb_rest.writes import global_tags, insertion
from tests.commands.helpers import known


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


def numbers(printed):
    """The figures of the last line."""
    found = re.fullmatch(
        r"(?:P|Would p)rune[d]? (\S+) revisions of (\S+) global tags; (?:would )?delete[d]? (\S+) rows of the history of IOVs, "
        r"(\S+) versions of payload lists, (\S+) memberships of payload lists and (\S+) deleted tags \(\d+\.\d s\)\.\n",
        printed,
    )
    return tuple(map(int, found.groups()))


pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payload_types")]


def rows_of_history():
    tables = (PayloadIOVHistory, PayloadListVersion, PayloadListMembership, DeletedGlobalTag)
    return [table.objects.count() for table in tables]


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
        (["--keep", "1", "--tag", "("], "--tag must be a regular expression of RE2 (got '(';"),
    ],
)
def test_wrong_options(arguments, message):
    with pytest.raises(CommandError, match=re.escape(message)):
        prune(*arguments)


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
