"""A copy of a database of nopayloaddb has what the decisions say, and follows the source, whatever that contains."""

import dataclasses
import json
from collections import Counter
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings

from cdb_rest import named_sql
from cdb_rest.adopt.copying import Copy, begin
from cdb_rest.adopt.decisions import Decisions
from cdb_rest.adopt.source import Source
from cdb_rest.adopt.updating import Updated, copy_tags, update
from cdb_rest.adopt.verifying import verify
from cdb_rest.history.contents import find_past, iovs_of, past_lists, present_lists
from cdb_rest.maintenance.history_check import find_history_faults
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.writes.global_tags import change_status, delete_global_tag
from cdb_rest.writes.payload_iovs import attach_payload_iov
from tests.adopt import histories, model
from tests.adopt.old_database import MAX, OldDatabase
from tests.builders import make_statuses
from tests.profiles import examples

pytestmark = pytest.mark.django_db

STATUSES = {"Locked": "locked", "test": "unlocked"}
PLAYED = {"suppress_health_check": [HealthCheck.function_scoped_fixture], "deadline": None}
NAMES = {"equal_starts": "duplicate_starts"}


def decisions_of(
    chosen: dict[str, str], mode: str = "continuous", *, share: bool = False, frozen: str = "frozen"
) -> Decisions:
    choices = {NAMES.get(kind, kind): choice for kind, choice in chosen.items()} | {"frozen_as": frozen}
    return Decisions(mode=mode, choices=choices, statuses=STATUSES, share=share)


def adopted(database: OldDatabase, decisions: Decisions) -> Copy:
    source = Source(database.connection.dsn, timeout_seconds=60)
    copy = Copy(source, begin(source, decisions), decisions, lambda *_: None)
    copy_tags(copy, [])
    return copy


def row_of(columns: dict[str, Any]) -> tuple[Any, ...]:
    names = ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "payload_url", "checksum", "size", "extra")
    return tuple(columns[name] for name in names)


def model_rows(rows: list[model.Row]) -> Counter[tuple[Any, ...]]:
    return Counter((*row.start, *row.end, row.payload_url, row.checksum, row.size, row.extra) for row in rows)


def expected(data: model.Data, decided: model.Data, *, frozen: str = "frozen") -> dict[str, Any]:
    """What should be here: tags with their status and rows by type, detached lists by name, and the detached IOVs."""
    names = {"frozen": frozen} | STATUSES
    lists = {one.id: one for one in decided.lists}
    return {
        "tags": {tag.name: names.get(tag.status, tag.status) for tag in data.tags},
        "lists": {
            one.name: (
                next((tag.name for tag in data.tags if tag.id == one.tag), None),
                model_rows(decided.rows_of(one.id)),
            )
            for one in lists.values()
        },
        "detached": model_rows([row for row in decided.rows if row.payload_list is None]),
    }


def contents() -> dict[str, Any]:
    """What is here, in the form of `expected`."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    lists = present_lists(PayloadList.objects.order_by("id"))
    rows: dict[int, Counter[tuple[Any, ...]]] = {item.id: Counter() for item in lists}
    for columns in iovs_of(lists):
        rows[columns["payload_list_id"]][row_of(columns)] += 1
    tags = dict(PayloadList.objects.values_list("id", "global_tag__name"))
    counts = dict(PayloadList.objects.values_list("id", "iov_count"))
    assert counts == {list_id: found.total() for list_id, found in rows.items()}
    return {
        "tags": dict(GlobalTag.objects.values_list("name", "status__name")),
        "lists": {item.name: (tags[item.id], rows[item.id]) for item in lists},
        "detached": Counter(row_of(row) for row in PayloadIOV.objects.filter(payload_list=None).values()),
    }


def lookup(tag: str, moment: model.Moment, mode: str) -> dict[str, str]:
    with connection.cursor() as cursor:
        values = {"tag": tag, "major": moment[0], "minor": moment[1], "inclusive": mode == "discrete"}
        cursor.execute(named_sql.load("own_answer"), values)
        return {row[0]: row[1] for row in json.loads(cursor.fetchone()[0])}


def check_lookups(decided: model.Data, mode: str) -> None:
    for tag in decided.tags:
        lists = {one.payload_type: decided.rows_of(one.id) for one in decided.lists if one.tag == tag.id}
        moments = model.change_moments([row for rows in lists.values() for row in rows])
        for moment in [moment for moment in moments if moment[0] <= MAX]:
            found = {name: model.answer(rows, moment) for name, rows in lists.items()}
            urls = {name: row.payload_url for name, row in found.items() if row is not None}
            assert lookup(tag.name, moment, mode) == urls, (tag.name, moment)


@pytest.fixture
def emptied():
    """This database is emptied by each example of a test, which runs in a savepoint."""
    make_statuses()


def in_savepoint(test: Any) -> None:
    """Run the test, and take back what it has stored here."""
    with transaction.atomic():
        test()
        transaction.set_rollback(True)


@pytest.mark.parametrize(("variant", "mode"), [("V3", "continuous"), ("V8", "continuous"), ("V9", "discrete")])
@settings(max_examples=examples(60), **PLAYED)
@given(steps=histories.HISTORIES, chosen=histories.DECISIONS)
def test_a_copy_has_what_the_decisions_say(scratch, emptied, variant, mode, steps, chosen):
    def test() -> None:
        database = OldDatabase(scratch, variant)
        histories.begin(database)
        histories.play(database, steps)
        data = model.Data.read(database)
        decided = model.decided(data, mode, chosen)
        copy = adopted(database, decisions_of(chosen, mode))
        assert contents() == expected(data, decided)
        types = database.execute("SELECT id, name FROM {PayloadType} ORDER BY id")
        assert [*PayloadType.objects.order_by("id").values_list("id", "name")] == types
        check_lookups(decided, mode)
        assert verify(copy).unexplained == 0
        assert model.Data.read(database) == data

    in_savepoint(test)


@settings(max_examples=examples(100), **PLAYED)
@given(steps=histories.HISTORIES, changes=histories.CHANGES, chosen=histories.DECISIONS)
def test_an_update_gives_the_same_as_a_new_copy(scratch, emptied, steps, changes, chosen):
    def test() -> None:
        database = OldDatabase(scratch)
        histories.begin(database)
        histories.play(database, steps)
        copy = adopted(database, decisions_of(chosen | {"detached": "keep"}, share=True, frozen="locked"))
        before = {tag.name: contents_of_tag(tag.name) for tag in GlobalTag.objects.all()}
        assert not update(copy)
        histories.play(database, changes)
        result = update(copy)
        data = model.Data.read(database)
        decided = model.decided(data, "continuous", chosen | {"detached": "keep"})
        assert not result.conflicts
        here, there = contents(), expected(data, decided, frozen="locked")
        # If a row became the older one of two with the same content, it stays attached here, and is not stored twice.
        attached = {(*row[:2], row[4]) for _, rows in here["lists"].values() for row in rows}
        assert {(*row[:2], row[4]) for row in there["detached"] - here["detached"]} <= attached
        assert here | {"detached": None} == there | {"detached": None}
        assert not here["detached"] - there["detached"]
        assert not update(copy)
        assert verify(copy).unexplained == 0
        assert not find_history_faults()
        for name, rows in before.items():
            assert contents_of_tag(name, revision=1) == rows

    in_savepoint(test)


def test_an_update_keeps_iovs_whose_start_has_moved(scratch, emptied):
    database = OldDatabase(scratch).create()
    payload_list = database.payload_list("Pedestals", database.tag("online"))
    for start in (0, 10, 20):
        database.iov(payload_list, (0, start), (0, start + 10))
    copy = adopted(database, decisions_of({}))
    database.execute(
        "UPDATE {PayloadIOV} SET minor_iov = minor_iov + 5, comb_iov = comb_iov + 5e-19 WHERE minor_iov > 0"
    )
    assert update(copy).changed == ["online"]
    assert [row[1] for row in sorted(contents_of_tag("online"))] == [0, 15, 25]
    assert verify(copy).unexplained == 0


def test_a_new_name_can_be_replaced_until_the_tag_is_copied(scratch, emptied):
    database = OldDatabase(scratch).create()
    database.tag("online")
    copy = adopted(database, decisions_of({}))
    database.tag("later")

    def update_with(name: str) -> Updated:
        adoption = begin(copy.source, Decisions(renames={"later": name}))
        return update(dataclasses.replace(copy, adoption=adoption, decisions=Decisions.from_json(adoption.decisions)))

    assert update_with("online").conflicts == {
        "later": "a global tag 'online' exists here already (--rename later=NEW)"
    }
    assert update_with("other").added == ["later (here other)"]
    with pytest.raises(InvalidInputError, match="another decision about later: other"):
        update_with("third")


def test_an_update_leaves_a_frozen_tag_alone_whose_lists_went_elsewhere(scratch, emptied):
    database = OldDatabase(scratch).create()
    frozen, other = database.tag("physics", "frozen"), database.tag("calibration")
    moved, left = database.payload_list("Pedestals", frozen), database.payload_list("Noise", frozen)
    for payload_list in (moved, left):
        database.iov(payload_list, (0, 0))
    copy = adopted(database, decisions_of({"detached": "keep"}))
    before = contents_of_tag("physics")
    database.execute("UPDATE {PayloadList} SET global_tag_id = %s WHERE id = %s", other, moved)
    database.execute("UPDATE {PayloadList} SET global_tag_id = NULL WHERE id = %s", left)
    database.iov(left, (0, 5))
    assert update(copy).conflicts == update(copy).conflicts
    assert update(copy).conflicts.keys() == {"physics", "calibration"}
    assert (contents_of_tag("physics"), GlobalTag.objects.get(name="physics").revision) == (before, 1)


def test_what_is_in_no_tag_is_not_taken_from_two_sources(scratch, url, emptied, build):
    build.iov(None, (7, 0), url="own.root")
    database = OldDatabase(scratch).create()
    database.payload_list("Pedestals", database.tag("online"))
    source = Source(database.connection.dsn, timeout_seconds=60)
    copy_tags(Copy(source, begin(source, decisions_of({})), decisions_of({}), lambda *_: None), ["online"])
    arguments = ("adopt", url, "--mode", "continuous")
    with pytest.raises(CommandError, match="this database is not empty"):
        call_command(*arguments, "--copy")


def test_only_a_list_that_was_changed_explains_a_difference(scratch, emptied):
    database = OldDatabase(scratch, "V9").create()
    tag = database.tag("online")
    gain, noise = (database.payload_list(payload_type, tag) for payload_type in ("Gain", "Noise"))
    for payload_list in (gain, noise):
        database.iov(payload_list, (0, 0), extra="rev. 5")
    copy = adopted(database, decisions_of({"bad_revision": "drop"}))
    change_status(name="online", status="locked")
    PayloadIOV.objects.filter(payload_list__name=f"Noise_{noise}").update(payload_url="other.root")
    database.execute("UPDATE {PayloadIOV} SET payload_url = 'new.root' WHERE payload_list_id = %s", gain)
    assert (verify(copy).explained, verify(copy).unexplained) == (1, 1)


def test_lists_move_to_new_tags_and_stay_if_they_were_changed_here(scratch, emptied, build):
    database = OldDatabase(scratch).create()
    moved, detached = database.payload_list("Gain", database.tag("online")), database.payload_list("Noise")
    database.iov(moved, (0, 0))
    copy = adopted(database, decisions_of({"detached": "keep"}))
    physics = database.tag("physics", "frozen")
    database.execute("UPDATE {PayloadList} SET global_tag_id = %s WHERE id = %s", physics, moved)
    database.execute("DELETE FROM {PayloadList} WHERE id = %s", detached)
    attach_payload_iov(payload_list=f"Noise_{detached}", iov_id=build.iov(None, (0, 0)).id)
    result = update(copy)
    assert (result.added, result.changed, result.conflicts) == (["physics"], ["online"], {})
    assert [*PayloadList.objects.order_by("id").values_list("id", "global_tag__name", "iov_count")] == [
        (moved, "physics", 1),
        (detached, None, 1),
    ]
    assert not verify(copy).unexplained and not update(copy)


def test_a_list_whose_type_has_changed_is_a_conflict(scratch, emptied):
    database = OldDatabase(scratch).create()
    database.payload_list("Gain", database.tag("online"))
    copy = adopted(database, decisions_of({}))
    database.execute("UPDATE {PayloadType} SET name = 'Gains'")
    assert "has the payload type Gains in the source now, and Gain here" in update(copy).conflicts["online"]


def test_a_tag_that_was_changed_or_deleted_here_follows_again_if_it_is_overwritten(scratch, emptied, build):
    database = OldDatabase(scratch).create()
    payload_list = database.payload_list("Pedestals", database.tag("online"))
    database.iov(payload_list, (0, 0))
    copy = adopted(database, decisions_of({}))
    overwriting = dataclasses.replace(copy, overwrites=["online"])
    before = contents_of_tag("online")
    attach_payload_iov(payload_list=PayloadList.objects.get().name, iov_id=build.iov(None, (0, 5)).id)
    assert update(copy).conflicts.keys() == {"online"} and contents_of_tag("online") != before
    assert update(overwriting).changed == ["online"]
    assert contents_of_tag("online") == before and not update(copy)
    delete_global_tag(name="online")
    assert update(copy).conflicts.keys() == {"online"}
    assert update(overwriting).changed == ["online"]
    assert contents_of_tag("online") == before and not update(copy)
    assert not find_history_faults()


def contents_of_tag(name: str, revision: int | None = None) -> Counter[tuple[Any, ...]]:
    lists = (
        present_lists(PayloadList.objects.filter(global_tag__name=name))
        if revision is None
        else past_lists(find_past(name, AsOf(revision=revision)))
    )
    return Counter(row_of(columns) for columns in iovs_of(lists))
