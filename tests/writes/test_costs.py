"""The cost of a write: the same statements in a long list as in a short one, and only the affected rows."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

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
