"""The cost of a write: the rows that it reads."""

import pytest
from django.db import connection

from cdb_rest.writes.placing import NEIGHBOURS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("analysed", [True, False])
def test_the_neighbours_come_by_the_index_and_no_other_row_is_read(build, analysed):
    with connection.cursor() as cursor:
        if not analysed:
            # What earlier tests had analysed.
            cursor.execute('TRUNCATE "PayloadIOV"')
            cursor.execute("DELETE FROM pg_statistic WHERE starelid = '\"PayloadIOV\"'::regclass")
    payload_list = build.list(build.tag())
    with connection.cursor() as cursor:
        cursor.execute(
            'INSERT INTO "PayloadIOV" (payload_url, major_iov, minor_iov, major_iov_end, minor_iov_end, payload_list_id) '
            "SELECT 'u', n, 0, n + 1, 0, %s FROM generate_series(0, 25999) AS n",
            [payload_list.id],
        )
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
