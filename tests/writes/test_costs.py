"""The cost of a write: the same statements in a long list as in a short one, and only the affected rows."""

from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cdb_rest.models import PayloadIOV
from cdb_rest.writes import bulk, payload_iovs
from cdb_rest.writes.placing import NEIGHBOURS

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


def test_attaching_sends_the_same_statements_whatever_the_length_of_the_list(build):
    sent = []
    for count in (10, 26_000):
        payload_list = filled(build, count, f"with {count}")
        iov = build.iov(None, (count // 2, 0), (count // 2, 7))
        sent.append(statements(partial(payload_iovs.attach_payload_iov, payload_list=payload_list.name, iov_id=iov.id)))
        assert payload_list.payload_iovs.count() == count + 1
    assert sent[0] == sent[1]


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


def test_a_bulk_insert_sends_the_same_statements_whatever_the_number_of_rows(build):
    lists = [filled(build, 10, name) for name in ("a", "b", "c")]

    def insert(count, first):
        return bulk.insert_payload_iovs(
            rows=[
                {
                    "payload_url": "u",
                    "payload_list": lists[number % 3].name,
                    "major_iov": first + number,
                    "minor_iov": 0,
                }
                | ({"major_iov_end": first + number + 1, "minor_iov_end": 0} if number % 2 else {})
                for number in range(count)
            ]
        )

    few, many = statements(lambda: insert(3, 1000)), statements(lambda: insert(3000, 10_000))
    assert few == many
    # And the second parts of open rows that closed ones have split.
    assert PayloadIOV.objects.filter(payload_list__isnull=False).count() >= 30 + 3003
