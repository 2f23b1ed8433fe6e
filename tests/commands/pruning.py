"""A history of global tags to prune, and what is known of it."""

import re
from io import StringIO

from django.core.management import call_command
from django.db import transaction

from cdb_rest.history.contents import past_iovs, past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.models import (
    GlobalTagChange,
)
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, RevisionPrunedError
from cdb_rest.writes import global_tags, insertion


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
