"""Compiled tags: random tags with every form of lookup, held against PostgreSQL's answers; changes; writes by SQL."""

from decimal import Decimal
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.compiled import collector, directory, writer
from cdb_rest.compiled.compiler import compile_tag
from cdb_rest.compiled.manifest import OFFSETS, ROWS
from cdb_rest.compiled.registry import registry
from cdb_rest.compiled.tag import HEAD_BYTES, HEAD_TYPE
from cdb_rest.lookup.model import ANY_STATE, LookupQuery, Validators
from cdb_rest.lookup.queries import look_up
from cdb_rest.models import GlobalTag, PayloadIOV
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import Mode, Moment
from tests.builders import Builder, make_statuses
from tests.histories.test_etags import clear
from tests.lookup.compiling import FORMS, check, insert, kinds, recompile, same_as_postgresql
from tests.lookup.test_oracle import LISTS, MOMENTS, TYPE_NAMES, moments_of_interest
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)

# Texts that JSON or COPY write in another way.
TEXTS = ['"', "\\", "\t", "\n", "\\N", "/", "é", "\x7f", "\x0b", "𝄞", '"],["', "%b", ", ", "null", "plain"]


def starts_of(path):
    """The starts of the records in the file of a compiled tag, in its order."""
    offsets, content = np.load(path / OFFSETS), (path / ROWS).read_bytes()
    heads = [np.frombuffer(content, HEAD_TYPE, 1, offset - HEAD_BYTES)[0] for offset in offsets[:-1].tolist()]
    return [(int(head["major"]), int(head["minor"])) for head in heads]


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(
    lists=LISTS,
    extra=MOMENTS,
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3).map("".join),
    mode=st.sampled_from(Mode),
    at_once=st.sampled_from([1, 4, 1_000_000]),
)
def test_random_tags(compiled_tags, lists, extra, texts, mode, at_once):
    clear()
    make_statuses()
    build = Builder()
    tag = build.tag()
    for name, rows in zip(TYPE_NAMES, lists, strict=False):
        payload_list = build.list(tag, name)
        for (start, end), revision in rows:
            build.iov(payload_list, start, end, url=f"{texts}{start[0]}", checksum=texts, extra=revision)
    with (
        patch.multiple(collector, ROWS_AT_ONCE=at_once, BYTES_AT_ONCE=200 * at_once),
        patch.object(writer, "PLACES_AT_ONCE", at_once),
    ):
        path = compile_tag("tag")
    assert starts_of(path) == sorted(start for rows in lists for (start, _), _ in rows)
    registry.refresh()
    before = kinds()
    moments = [*moments_of_interest(lists), extra]
    for moment in moments:
        same_as_postgresql("tag", moment, mode)
    assert kinds() - before == {"confirmed": len(FORMS) * len(moments)}


@given(
    rows=st.lists(st.tuples(st.integers(0, 30).map(Decimal), st.integers(0, 60)), max_size=200),
    rows_at_once=st.integers(1, 20),
    bytes_at_once=st.integers(1, 5_000),
)
def test_parts_are_as_large_as_they_may_be(rows, rows_at_once, bytes_at_once):
    """With a sample that has all rows."""
    with patch.multiple(collector, ROWS_AT_ONCE=rows_at_once, BYTES_AT_ONCE=bytes_at_once):
        separators = collector._separators(rows, 1)
    assert separators == sorted(set(separators))
    for after, until in pairwise([collector.BEGINNING, *separators, collector.END]):
        part = sorted((start, size + collector.ROW_BYTES) for start, size in rows if after < start <= until)
        # Without the rows that start last, the limits are not reached; with them they are, except in the last part.
        before = [size for start, size in part if start < part[-1][0]]
        assert len(before) < rows_at_once and sum(before) < bytes_at_once
        whole = [size for _, size in part]
        assert until == collector.END or len(whole) >= rows_at_once or sum(whole) >= bytes_at_once


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_changed_lists_come_from_postgresql_until_the_tag_is_compiled_again(api, tag):
    check("confirmed")
    insert(api, "Noise", 2, url="other")
    check("changed")
    insert(api, "Gain", 2, url="other")
    check("changed")
    insert(api, "Pedestal", 2, url="other")
    check("all")
    again = recompile()
    check("confirmed")
    assert directory.paths() == [again]


def test_lists_that_come_and_go(api, tag):
    noise = api.get("gtPayloadLists/tag").json["Noise"]
    PayloadIOV.objects.filter(payload_list__name=noise).delete()
    api.delete(f"deletePayloadList/{noise}").ok()
    check("changed")
    for name in ("A", "Zeta"):
        api.post("pt", {"name": name}).ok()
        insert(api, name, 2)
    check("changed")
    api.post("gt", {"name": "other", "status": "unlocked"}).ok()
    api.put("pl_attach", {"global_tag": "other", "payload_list": api.get("gtPayloadLists/tag").json["Gain"]}).ok()
    check("changed")


def test_a_frozen_tag_needs_no_database(api, tag, django_assert_num_queries):
    api.put("gt_change_status/tag/locked").ok()
    api.put("gt_change_status/tag/frozen").ok()
    check("changed")
    recompile()
    # Once, to be sure that it is the same database.
    check("confirmed", "none")
    check("none")
    with django_assert_num_queries(0):
        found = look_up(LookupQuery("tag", Moment(2, 0)), with_window=True)
        assert found.body is not None
        for validators in (Validators((found.state.version,)), ANY_STATE):
            assert look_up(LookupQuery("tag", Moment(2, 0)), validators).body is None


def test_a_revision_needs_no_database(api, tag, django_assert_num_queries):
    early = GlobalTag.objects.get(name="tag").revision - 3
    for kind in ("Gain", "Noise", "Pedestal"):
        insert(api, kind, 2, url="other")
    recompile(early)
    check("none", as_of=AsOf(revision=early))
    # The present state that was compiled is that of a revision, too.
    check("none", as_of=AsOf(revision=early + 3))
    check("all")
    with django_assert_num_queries(0):
        look_up(LookupQuery("tag", Moment(2, 0), as_of=AsOf(revision=early)))
    check(as_of=AsOf(revision=early + 1))


def test_a_tag_that_was_deleted_and_made_again(api, tag):
    api.delete("deleteGlobalTag/tag").ok()
    before = kinds()
    same_as_postgresql("tag", (2, 0))
    assert not kinds() - before
    api.post("gt", {"name": "tag", "status": "unlocked"}).ok()
    insert(api, "Gain", 2, url="of the new one")
    check("all")


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE "PayloadIOV" SET payload_url = 'by hand' WHERE major_iov = 2""",
        """UPDATE "PayloadIOV" SET major_iov = 4 WHERE major_iov = 3""",
        """UPDATE "PayloadType" SET name = 'Zeta' WHERE name = 'Gain'""",
        """DELETE FROM "PayloadIOV" WHERE major_iov = 1""",
        """INSERT INTO "PayloadIOV" (payload_url, major_iov, minor_iov, payload_list_id)
        SELECT 'new', 5, 0, id FROM "PayloadList" """,
        """TRUNCATE "PayloadIOV" """,
        """UPDATE "PayloadList" SET payload_type_id = (SELECT id FROM "PayloadType" WHERE name = 'Spare')
        WHERE payload_type_id = (SELECT id FROM "PayloadType" WHERE name = 'Noise')""",
    ],
)
def test_writes_by_sql_are_seen(api, tag, statement):
    api.post("pt", {"name": "Spare"}).ok()
    check("confirmed")
    execute(statement)
    check("changed" if "PayloadType" in statement else "all")


def test_changes_that_are_younger_than_an_open_transaction(api, tag, second_connection):
    """A long transaction, of another writer or in another database, does not make lists seem to have changed."""
    with second_connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("""INSERT INTO "PayloadType" (name) VALUES ('Slow')""")
        for kind in ("Gain", "Noise"):
            insert(api, kind, 2, url="other")
        recompile()
        check("confirmed")
        insert(api, "Gain", 2, url="again")
        check("changed")
        cursor.execute("ROLLBACK")
    check("changed")


def test_a_transaction_that_was_open_during_the_compilation(api, tag, second_connection):
    """Its list counts as changed, whether the transaction was committed before or after."""
    with second_connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("""UPDATE "PayloadIOV" SET payload_url = 'late' WHERE id = (SELECT max(id) FROM "PayloadIOV")""")
        recompile()
        cursor.execute("COMMIT")
    check("changed")
    recompile()
    check("confirmed")
