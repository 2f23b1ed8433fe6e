"""Databases of nopayloaddb for other tests: all variants can be made, and the model finds what their SQL finds."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.adopt.faults import FAULTS, faults_of, plant
from tests.adopt.histories import CHANGES, DECISIONS, HISTORIES, begin, play
from tests.adopt.model import (
    ROW_CHOICES,
    Data,
    RefusedError,
    answer,
    change_moments,
    decided,
    faults,
    stored_answers,
)
from tests.adopt.old_database import (
    FORMS,
    INDEXES,
    OldDatabase,
    combined,
)
from tests.profiles import examples

FORMS_AND_INDEXES = [*((*form, None) for form in FORMS), *(("V7", True, index) for index in INDEXES)]


@pytest.mark.parametrize(("variant", "identity", "index"), FORMS_AND_INDEXES)
def test_every_variant_holds_the_faults_that_are_planted_in_it(scratch, variant, identity, index):
    schema = "public" if variant > "V5" else "django"
    database = OldDatabase(scratch, variant, identity=identity, schema=schema, index=index).create()
    planted = {name: plant(database, name) for name in faults_of(variant)}
    rows = {row.id: row for row in Data.read(database).rows}
    for name, found in planted.items():
        kind = FAULTS[name].kind
        if kind in ROW_CHOICES:
            assert [kind] * len(found) == [next(faults(rows[row], "continuous")) for row in found], name
        elif kind == "wrong_comb_iov":
            assert all(rows[row].comb_iov != combined(*rows[row].start) for row in found), name


@pytest.mark.parametrize("variant", ["V2", "V9"])
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=HISTORIES, changes=CHANGES)
def test_lookups_find_what_the_model_finds(scratch, variant, steps, changes):
    database = OldDatabase(scratch, variant)
    begin(database)
    play(database, steps)
    play(database, changes)
    data = Data.read(database)
    for tag in data.tags:
        lists = {one.id: data.rows_of(one.id) for one in data.lists if one.tag == tag.id}
        for moment in change_moments([row for rows in lists.values() for row in rows]):
            found = database.lookup(tag.name, *moment)
            for payload_list, rows in lists.items():
                expected = [row.id for row in stored_answers(rows, moment)] or [None]
                assert found.get(payload_list) in expected
                if all(row.comb_iov == combined(*row.start) for row in rows):
                    newest = answer(rows, moment)
                    assert (newest.id if newest else None) in expected


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=HISTORIES, decisions=DECISIONS, mode=st.sampled_from(["continuous", "discrete"]))
def test_decisions_leave_rows_that_the_constraints_allow(scratch, steps, decisions, mode):
    begin(database := OldDatabase(scratch))
    play(database, steps)
    data = Data.read(database)
    after = decided(data, mode, decisions)
    listed = [row for row in after.rows if row.payload_list is not None]
    assert all(min(*row.start, *row.end) >= 0 and row.end >= row.start for row in listed)
    assert len({(row.payload_list, row.start) for row in listed}) == len(listed)
    in_tags = [(one.tag, one.payload_type) for one in after.lists if one.tag is not None]
    assert len(set(in_tags)) == len(in_tags)
    kinds = {kind for row in data.rows if row.payload_list for kind in faults(row, mode)}
    for kind in kinds & {kind for kind, choices in ROW_CHOICES.items() if "refuse" in choices}:
        with pytest.raises(RefusedError, match=kind):
            decided(data, mode, decisions | {kind: "refuse"})
