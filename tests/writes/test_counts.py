"""The counts that the database maintains, and the cost of a write."""

import contextlib
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest import named_sql
from cdb_rest.maintenance.repair import find_incorrect_counts
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.moment import Moment
from cdb_rest.writes import bulk, global_tags, payload_iovs, payload_lists
from cdb_rest.writes.placing import NEIGHBOURS
from tests.builders import Builder
from tests.profiles import examples

TAGS = ["a", "b", "c"]
TYPES = ["Gain", "Noise"]


def pick(rows, number):
    found = list(rows.order_by("id"))
    return found[number % len(found)] if found else None


def write(action, first, second, third):
    """One write of a random history; the numbers pick among what is there. Refusals are part of the game."""
    if action.startswith("raw"):
        # Another program does not say that it records the history.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL cdb.records_history = 'off'")
    one_list, other_list = pick(PayloadList.objects, first), pick(PayloadList.objects, second)
    iov = pick(PayloadIOV.objects, third)
    tag = pick(GlobalTag.objects, second)
    if action == "create list":
        payload_lists.create_payload_list(payload_type=TYPES[first % 2])
    elif action == "attach list" and one_list and tag:
        payload_lists.attach_payload_list(global_tag=tag.name, payload_list=one_list.name)
    elif action == "delete list" and one_list:
        payload_lists.delete_payload_list(name=one_list.name)
    elif action == "create iov":
        payload_iovs.create_payload_iov(
            values={
                "payload_url": "u",
                "major_iov": first,
                "minor_iov": 0,
                "major_iov_end": first + 1,
                "minor_iov_end": 0,
            }
        )
    elif action == "attach iov" and one_list and iov:
        payload_iovs.attach_payload_iov(payload_list=one_list.name, iov_id=iov.id)
    elif action == "bulk" and one_list and other_list:
        row = {"payload_url": "u", "minor_iov": third}
        lists = [one_list, other_list]
        bulk.insert_payload_iovs(
            rows=[row | {"payload_list": lists[n % 2].name, "major_iov": first + n} for n in range(third + 1)]
        )
    elif action == "delete iov" and iov and iov.payload_list and iov.payload_list.global_tag:
        payload_iovs.delete_payload_iov(
            global_tag=iov.payload_list.global_tag.name,
            payload_type=iov.payload_list.payload_type.name,
            start=Moment(iov.major_iov, iov.minor_iov),
            end=Moment(iov.major_iov_end, iov.minor_iov_end),
        )
    elif action == "clone" and tag:
        global_tags.clone_global_tag(source=tag.name, target=TAGS[first % 3])
    elif action == "delete tag" and tag:
        global_tags.delete_global_tag(name=tag.name)
    elif action == "raw update" and one_list and other_list:
        PayloadIOV.objects.filter(payload_list=one_list, minor_iov=third).update(payload_list=other_list)
    elif action == "raw delete" and one_list:
        PayloadIOV.objects.filter(payload_list=one_list, minor_iov=third).delete()


ACTIONS = [
    "create list",
    "attach list",
    "delete list",
    "create iov",
    "attach iov",
    "bulk",
    "delete iov",
    "clone",
    "delete tag",
    "raw update",
    "raw delete",
]
NUMBER = st.integers(0, 5)


@pytest.mark.django_db
@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), NUMBER, NUMBER, NUMBER), min_size=5, max_size=25))
def test_counts_stay_right_through_random_histories(history):
    with transaction.atomic():
        build = Builder()
        for name in TAGS[:2]:
            tag = build.tag(name)
            build.iov(build.list(tag, "Gain"), (100, 100))
            build.list(tag, "Noise")
        for step in history:
            with contextlib.suppress(CdbError, IntegrityError), transaction.atomic():
                write(*step)
        with connection.cursor() as cursor:
            cursor.execute(named_sql.load("apply_deferred_counts"))
        assert find_incorrect_counts() == []
        transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
def test_truncating_empties_the_counts(build):
    build.iov(build.list(build.tag()), (0, 0))
    with connection.cursor() as cursor:
        cursor.execute('TRUNCATE "PayloadIOV"')
    assert find_incorrect_counts() == []
    assert GlobalTag.objects.get().payload_iov_count == 0


@pytest.mark.django_db(transaction=True)
def test_incorrect_counts_are_found_and_repaired(build):
    payload_list = build.list(build.tag())
    build.iov(payload_list, (0, 0))
    PayloadList.objects.update(iov_count=7)
    GlobalTag.objects.update(payload_lists_count=0)
    out = StringIO()
    with pytest.raises(CommandError, match="faults: 3"):
        call_command("check_intervals", stdout=out)
    assert payload_list.name in out.getvalue()
    call_command("check_intervals", "--repair", stdout=out)
    assert "Faults repaired: 3" in out.getvalue()
    call_command("check_intervals", stdout=out)
    assert "No faults found" in out.getvalue()
    tag = GlobalTag.objects.get()
    assert (tag.payload_lists_count, tag.payload_iov_count, tag.payload_lists.get().iov_count) == (1, 1, 1)


pytestmark = pytest.mark.django_db(transaction=True)


def filled(build, count, name):
    """A list of `count` closed IOVs in a tag of its own."""
    payload_list = build.list(build.tag(name))
    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO "PayloadIOV" (payload_url, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id) '
            "SELECT 'u', n, 0, n + 1, 0, %s FROM generate_series(0, %s) AS n",
            [payload_list.id, count - 1],
        )
    return payload_list


def statements(write):
    with CaptureQueriesContext(connection) as queries:
        write()
    return [" ".join(query["sql"].split()[:2]) for query in queries]


@pytest.mark.parametrize("analysed", [True, False])
def test_the_neighbours_come_by_the_index_and_no_other_row_is_read(build, analysed):
    with connection.cursor() as cursor:
        if not analysed:
            # What earlier tests had analysed.
            cursor.execute('TRUNCATE "PayloadIOV"')
            cursor.execute("DELETE FROM pg_statistic WHERE starelid = '\"PayloadIOV\"'::regclass")
    payload_list = filled(build, 26_000, "long")
    with connection.cursor() as cursor:
        if analysed:
            cursor.execute('VACUUM ANALYZE "PayloadIOV"')
        cursor.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {NEIGHBOURS}",
            {"list_ids": [payload_list.id], "firsts": [12_000], "lasts": [12_003]},
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert plan.count("payload_iov_lookup") >= 3 and "Seq Scan" not in plan, plan
    assert "Rows Removed by Filter" not in plan, plan
    pages = sum(int(part.split("=")[1]) for part in plan.splitlines()[1].split() if part.startswith("hit="))
    assert pages < 40, plan
