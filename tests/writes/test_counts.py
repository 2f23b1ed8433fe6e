"""The counts that the database maintains, and the cost of a write."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from cdb_rest.maintenance.repair import find_incorrect_counts
from cdb_rest.models import GlobalTag, PayloadList
from cdb_rest.writes.placing import NEIGHBOURS


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
