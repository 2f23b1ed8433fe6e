"""Compiled lists: random tags with every form of lookup, held against PostgreSQL's answers; changes; clones; writes by SQL."""

from io import StringIO
from unittest.mock import patch

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.compiled import compiler
from cdb_rest.compiled.registry import registry
from cdb_rest.lookup.model import ANY_STATE, LookupQuery, Validators
from cdb_rest.lookup.queries import look_up
from cdb_rest.models import GlobalTag
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import Mode, Moment
from tests.builders import Builder, make_statuses
from tests.histories.steps import clear
from tests.lookup.compiling import FORMS, check, delete_compiled, insert, kinds, recompile, same_as_postgresql
from tests.lookup.test_oracle import LISTS, MOMENTS, TYPE_NAMES, moments_of_interest
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)

# Texts that JSON or COPY write in another way.
TEXTS = ['"', "\\", "\t", "\n", "\\N", "/", "é", "\x7f", "\x0b", "𝄞", '"],["', "%b", ", ", "null", "plain"]


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
    delete_compiled()
    make_statuses()
    build = Builder()
    tag = build.tag()
    for name, rows in zip(TYPE_NAMES, lists, strict=False):
        payload_list = build.list(tag, name)
        for (start, end), revision in rows:
            build.iov(payload_list, start, end, url=f"{texts}{start[0]}", checksum=texts, extra=revision)
    with patch.object(compiler, "ROWS_AT_ONCE", at_once):
        recompile()
    before = kinds()
    moments = [*moments_of_interest(lists), extra]
    for moment in moments:
        same_as_postgresql("tag", moment, mode)
    assert kinds() - before == ({"confirmed": len(FORMS) * len(moments)} if lists else {})


def execute(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def test_changed_lists_come_from_postgresql_until_they_are_compiled(api, tag):
    check("confirmed")
    for kind in ("Noise", "Gain"):
        insert(api, kind, 2, url="other")
        check_after_change("changed")
    insert(api, "Pedestal", 2, url="other")
    check("all")
    assert recompile() == 3
    check("confirmed")
    insert(api, "Gain", 2, url="again")
    assert recompile() == 1
    check("confirmed")


def check_after_change(expected):
    """The first lookup after a change is wholly PostgreSQL's. With it, the process learns the lists."""
    check("all", expected)
    check(expected)


def test_a_clone_uses_the_compiled_lists_that_it_shares(api, tag):
    api.post("cloneGlobalTag/tag/copy").ok()
    assert recompile(tag="copy") == 0
    insert(api, "Noise", 2, url="of the clone", tag="copy")
    assert recompile(tag="copy") == 1
    insert(api, "Gain", 2, url="of the base")
    assert recompile(tag="copy") == 0
    before = kinds()
    for major in range(6):
        same_as_postgresql("copy", (major, 0))
    assert set(kinds() - before) == {"confirmed"}


def test_many_changes_do_not_scatter_a_tag_over_many_files(api, tag):
    for number in range(3 * compiler.MOST_PACKS):
        insert(api, ("Gain", "Noise", "Pedestal")[number % 3], 2, url=f"other{number}")
        recompile()
    check("confirmed")
    assert len(registry.find("tag").parts) <= compiler.MOST_PACKS


def test_a_frozen_tag_needs_no_database(api, tag, django_assert_num_queries):
    api.put("gt_change_status/tag/locked").ok()
    api.put("gt_change_status/tag/frozen").ok()
    # Its lists have not changed.
    check("all", "none")
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
    check(as_of=AsOf(revision=early + 4))


def test_a_frozen_tag_and_a_revision_need_the_database_until_no_failover_can_lose_them(api, tag, settings):
    # The server of the tests has no slot.
    settings.CDB_REPLICATION_SLOTS = 1
    revision = GlobalTag.objects.get(name="tag").revision
    insert(api, "Gain", 2, url="other")
    recompile(revision)
    check(as_of=AsOf(revision=revision))
    for status in ("locked", "frozen"):
        api.put(f"gt_change_status/tag/{status}").ok()
    recompile()
    check("confirmed")
    settings.CDB_REPLICATION_SLOTS = 0
    for past in ("", f"&rev={revision}"):
        api.get(f"payloadiovs/?gtName=tag&majorIOV=2&minorIOV=0{past}").ok()
    check("none")
    check("none", as_of=AsOf(revision=revision))


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
    is_of_some_lists = statement.startswith(('UPDATE "PayloadType"', 'UPDATE "PayloadList"'))
    check("all", *(["changed"] if is_of_some_lists else []))


def test_a_transaction_that_was_open_during_the_compilation(api, tag, second_connection):
    """Its list counts as changed, whether the transaction was committed before or after."""
    with second_connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("""UPDATE "PayloadIOV" SET payload_url = 'late' WHERE id = (SELECT max(id) FROM "PayloadIOV")""")
        recompile()
        cursor.execute("COMMIT")
    check_after_change("changed")
    assert recompile() == 1
    check("confirmed")


def test_files_of_the_database_before_a_restoration_are_not_used(api, tag):
    for status in ("locked", "frozen"):
        api.put(f"gt_change_status/tag/{status}").ok()
    recompile()
    check("none")
    call_command("record_restoration", stdout=StringIO())
    registry.confirm()
    check()
    assert recompile() == 3
    check("none")
