"""Undoing one change of a global tag: rows and lists come back, later changes stay, and obstacles are named."""

from functools import partial

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from cdb_rest import named_sql
from cdb_rest.history.contents import find_past, iovs_of, past_lists
from cdb_rest.maintenance.repair import find_faults
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import CdbError, UndoConflictError
from cdb_rest.rules.moment import OPEN, Interval, Moment
from cdb_rest.writes import global_tags, insertion, payload_iovs, payload_types
from cdb_rest.writes.clearing import clear_interval
from cdb_rest.writes.reverting import revert_global_tag
from cdb_rest.writes.transactions import roll_back
from cdb_rest.writes.undoing import undo_change
from tests.histories.oracle import Row, valid_payload

pytestmark = pytest.mark.django_db(transaction=True)
TYPES = ("Gain", "Noise")


KEY = ("payload_url", "checksum", "size", "extra", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end")


def revision():
    return GlobalTag.objects.get(name="tag").revision


def past_contents(number):
    """The rows of the tag by payload type at a revision, as the history has it."""
    lists = past_lists(find_past("tag", AsOf(revision=number)))
    return {one.payload_type: [tuple(row[name] for name in KEY) for row in iovs_of([one])] for one in lists}


def contents():
    """The rows of the tag by payload type, also those that a list shares."""
    return past_contents(revision())


def write(kind, payload_type, url, start, length, back):
    """A write of a random history. One that is refused has no effect."""
    end = start + length
    if kind == "clear":
        clear_interval(global_tag="tag", payload_type=payload_type, interval=Interval(Moment(start, 0), Moment(end, 0)))
    elif kind == "delete":
        rows = contents()[payload_type]
        *_, major, minor, major_end, minor_end = rows[back % len(rows)]
        where = {"start": Moment(major, minor), "end": Moment(major_end, minor_end)}
        payload_iovs.delete_payload_iov(global_tag="tag", payload_type=payload_type, **where)
    elif kind == "revert":
        revert_global_tag(name="tag", revision=max(revision() - back, 1))
    elif kind == "undo":
        undo_change(name="tag", revision=max(revision() - back, 1))
    else:
        row = {
            "global_tag": "tag",
            "payload_type": payload_type,
            "payload_url": url,
            "major_iov": start,
            "minor_iov": 0,
        }
        ends = dict(
            zip(("major_iov_end", "minor_iov_end"), (end, 0) if kind == "insert" else (OPEN, OPEN), strict=True)
        )
        insertion.insert_payloads(rows=[row | ends | {"size": 1, "extra": "1", "since_only": kind == "append"}])


def answers(state):
    """The valid payload of each type at each moment of the history."""
    found = {}
    for payload_type in TYPES:
        rows = [
            Row(url, (major, minor), (2**63, 0) if major_end == OPEN else (major_end, minor_end))
            for url, *_, major, minor, major_end, minor_end in state.get(payload_type, [])
        ]
        found |= {(payload_type, major): valid_payload(rows, (major, 0)) for major in range(20)}
    return found


WRITES = st.tuples(
    st.sampled_from(["insert", "insert", "append", "append", "open", "clear", "delete", "revert", "undo"]),
    st.sampled_from(TYPES),
    st.sampled_from("abcd"),
    st.integers(0, 7),
    st.integers(1, 5),
    st.integers(0, 4),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(history=st.lists(WRITES, min_size=4, max_size=10), back=st.integers(0, 5), is_clone=st.booleans())
def test_an_undone_change_is_gone_and_later_changes_stay(history, back, is_clone):
    with transaction.atomic():
        global_tags.create_global_tag(name="tag", status="unlocked")
        for name in TYPES:
            payload_types.create_payload_type(name=name)
        for number, one in enumerate(history):
            try:
                write(*one)
            except (CdbError, KeyError, ZeroDivisionError):
                continue
            if is_clone and number == len(history) // 2:
                # A copy that shares its rows takes the place of the tag.
                global_tags.clone_global_tag(source="tag", target="copy")
                global_tags.delete_global_tag(name="tag")
                global_tags.clone_global_tag(source="copy", target="tag")
        created = GlobalTagChange.objects.filter(global_tag="tag", action__in=("create", "clone")).latest("revision")
        chosen = revision() - back
        if chosen > created.revision:
            check_undo(chosen)
        transaction.set_rollback(True)


def check_undo(chosen):
    newest, now = revision(), contents()
    before, after = (
        past_contents(number)
        for number in (
            GlobalTagChange.objects.filter(revision__lt=chosen, global_tag="tag").latest("revision").revision,
            chosen,
        )
    )
    try:
        tried = roll_back(partial(undo_change, name="tag", revision=chosen))
    except UndoConflictError:
        event("conflict")
        assert contents() == now and revision() == newest and chosen != newest
        return
    assert contents() == now and revision() == newest
    done = undo_change(name="tag", revision=chosen)
    assert [(one.payload_type, one.removed, one.added) for one in done.types] == [
        (one.payload_type, one.removed, one.added) for one in tried.types
    ]
    found = contents()
    assert (found != now or list(found) != list(now)) == (done.revision is not None)
    with connection.cursor() as cursor:
        cursor.execute(named_sql.load("apply_deferred_counts"))
    assert find_faults() == []
    if chosen == newest:
        event("newest")
        assert found == before
        return
    event("earlier")
    was, had, has, gets = (answers(state) for state in (before, after, now, found))
    lasting = answers({kind: [row for row in rows if row[6] == OPEN] for kind, rows in now.items()})
    for place, payload in gets.items():
        if was[place] == had[place] or has[place] != had[place]:
            assert payload == has[place], place
        elif payload != was[place]:
            # What was valid before the change is gone. At most, an open IOV lasts up to the next start instead.
            assert payload is None or payload == lasting[place]
    # What was undone can be undone.
    if done.revision is not None:
        undo_change(name="tag", revision=done.revision)
        assert contents() == now
