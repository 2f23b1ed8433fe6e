"""The plans with which PostgreSQL executes analyses, under the settings of their transactions: no table of IOVs is read
sequentially.
"""

import pytest
from django.db import connection

from cdb_rest.analysis import difference
from cdb_rest.models import PayloadType
from cdb_rest.services import global_tags, insertion
from tests.plans import nodes, vacuum

pytestmark = pytest.mark.django_db(transaction=True)

# The majors at which the rows of each payload list start, in the present and in the past.
FIRST, LAST = 10, 10_000
LARGE_TABLES = ("PayloadIOV", "PayloadIOVHistory", "PayloadListVersion")
WINDOW = "since=500,0&until=600,0"
# From the first row on, one row for each major in the present, and another one at revision 2; and many later versions.
FILL = """
    INSERT INTO "PayloadIOV" (
        payload_list_id, payload_url, checksum, major_iov, minor_iov, major_iov_end, minor_iov_end, added_in
    )
    SELECT list.id, kind.name || '/new/' || n, kind.name || '-new-' || n, n, 0, n + 1, 0, 2
    FROM "PayloadList" AS list
    JOIN "PayloadType" AS kind ON kind.id = list.payload_type_id
    CROSS JOIN generate_series(%(first)s + 1, %(last)s) AS n;
    UPDATE "PayloadIOVHistory" SET until = %(first)s + 1;
    INSERT INTO "PayloadIOVHistory" (
        payload_list_id, node, comb_iov, until, added_in, removed_in, iov_id, payload_url, checksum, size, major_iov,
        minor_iov, major_iov_end, minor_iov_end, created
    )
    SELECT list.id, cdb_fork_node(1, 2), n, nullif(n, %(last)s) + 1, 1, 2, -n, kind.name || '/old/' || n,
        kind.name || '-old-' || n, 1, n, 0, n + 1, 0, now()
    FROM "PayloadList" AS list
    JOIN "PayloadType" AS kind ON kind.id = list.payload_type_id
    CROSS JOIN generate_series(%(first)s + 1, %(last)s) AS n;
    INSERT INTO "PayloadListVersion" (payload_list_id, number, version, iov_count)
    SELECT list.id, version.number + n, version.version + n, version.iov_count
    FROM "PayloadList" AS list
    JOIN "PayloadListVersion" AS version ON version.payload_list_id = list.id AND version.version = list.version
    CROSS JOIN generate_series(1, %(last)s) AS n;
"""


@pytest.fixture
def large(transactional_db, _statuses):
    """The tags a, b and c with two large payload lists; those of a were others at its revision 2."""
    types = ["Gain", "Noise"]
    PayloadType.objects.bulk_create(PayloadType(name=name) for name in types)
    global_tags.create_global_tag(name="a", status="unlocked")
    row = {"global_tag": "a", "since_only": False, "major_iov": FIRST, "minor_iov": 0}
    for url in ("old", "new"):
        insertion.insert_payloads(
            rows=[
                row | {"payload_type": name, "payload_url": url, "major_iov_end": FIRST + 1, "minor_iov_end": 0}
                for name in types
            ]
        )
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"first": FIRST, "last": LAST})
        for name in "bc":
            global_tags.clone_global_tag(source="a", target=name)
        cursor.execute("ANALYZE")
    vacuum("PayloadIOV", "PayloadIOVHistory")


@pytest.fixture
def plans(large, monkeypatch):
    """The plans of the statements that read IOVs: the list grows with each request."""
    found = []

    def explain(statement, parameters):
        # A cursor of the driver, so that nothing here is explained in turn.
        with connection.connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
            found.append(cursor.fetchone()[0][0]["Plan"])

    def execute(run, statement, parameters, many, context):
        if '"PayloadIOV"' in statement:
            # A server-side cursor has plans of its own.
            declare = "DECLARE explained CURSOR FOR " if context["cursor"].cursor.name else ""
            explain(declare + statement, parameters)
        return run(statement, parameters, many, context)

    def stream_copy(statement, parameters, copy=difference.stream_copy):
        query = statement.removeprefix("COPY (").rsplit(") TO STDOUT", 1)[0]
        explain(query, parameters)
        return copy(statement, parameters)

    monkeypatch.setattr(difference, "stream_copy", stream_copy)
    with connection.execute_wrapper(execute):
        yield found


def scans_of(plan, table):
    return [node for node in nodes(plan) if node.get("Relation Name") == table]


def assert_no_large_table_is_read_sequentially(plan):
    scans = [node for table in LARGE_TABLES for node in scans_of(plan, table)]
    assert [node for node in scans if "Seq Scan" in node["Node Type"]] == [], plan


def assert_lists_are_read_by_index(plan, lists):
    """The present of that many payload lists by the index of lookups alone, and their past by the primary key."""
    assert_no_large_table_is_read_sequentially(plan)
    assert not any("Gather" in node["Node Type"] for node in nodes(plan)), plan
    present, past = scans_of(plan, "PayloadIOV"), scans_of(plan, "PayloadIOVHistory")
    # For each list its rows in the window, and the row before them.
    assert (len(present), len(past)) == (2 * lists, lists), plan
    for scan in present:
        assert (scan["Node Type"], scan["Index Name"]) == ("Index Only Scan", "payload_iov_lookup"), scan
        assert "payload_list_id =" in scan["Index Cond"] and "comb_iov <" in scan["Index Cond"], scan
    for scan in past:
        assert (scan["Node Type"], scan["Index Name"]) == ("Index Scan", "PayloadIOVHistory_pkey"), scan
        assert "payload_list_id =" in scan["Index Cond"], scan


def test_differences_are_found_in_the_index(api, plans):
    for path, lists in (
        (f"global-tags/a/diff/b?{WINDOW}", 2),
        (f"global-tags/a/diff/a?rev_a=2&{WINDOW}", 2),
        (f"global-tags/a/diff/b?base_b=c&{WINDOW}", 3),
    ):
        assert bool(api.get(path).ok()) == ("rev_a" in path)
        api.get(f"{path}&summary=1").ok()
        api.get(f"{path}&by=checksum&payload_type=Gain").ok()
        assert len(plans) == 3
        for plan in plans:
            assert_lists_are_read_by_index(plan, lists)
        plans.clear()
    for body in ({"to": {"tag": "b"}}, {"from_rev": 2}):
        api.post("global-tags/a/affected", body | {"since": [500, 0], "until": [600, 0]}).ok()
        [plan] = plans
        assert_lists_are_read_by_index(plan, 2)
        plans.clear()
    # The whole axis of moments.
    api.get("global-tags/a/diff/a?rev_a=2&summary=1").ok()
    [plan] = plans
    assert_lists_are_read_by_index(plan, 2)


def test_coverage_is_found_in_the_index(api, plans):
    for path, lists in (
        ("global-tags/a/coverage", 1),
        (f"global-tags/a/coverage?{WINDOW}&payload_type=Gain", 1),
        ("global-tags/a/coverage?rev=2", 1),
        (f"global-tags/a/coverage?{WINDOW}&base=b", 2),
    ):
        api.get(path).ok()
        [plan] = plans
        assert_lists_are_read_by_index(plan, lists)
        plans.clear()


# For one row of each list of a type, and for a hundred. The braces are for the word of the present or of the past.
PAYLOADS = {
    "payload_url=Gain/{}/77": "url",
    "url_prefix=Noise/{}/12": "url",
    "checksum=Gain-{}-77": "checksum",
}


def test_uses_are_found_in_the_indexes_of_payloads(api, plans):
    for payload, column in PAYLOADS.items():
        uses = api.get(f"payload-iovs/uses?{payload.format('new')}").ok()
        assert {use["global_tag"] for use in uses} == {"a", "b", "c"}
        plan = plans.pop()
        assert_no_large_table_is_read_sequentially(plan)
        assert index_condition(plan, f"payload_iov_{column}")
        assert len(scans_of(plan, "PayloadIOV")) == 1, plan
        assert not scans_of(plan, "PayloadIOVHistory"), plan
        assert not plans


def test_uses_of_the_past_are_found_in_the_indexes_of_payloads(api, plans):
    for payload, column in PAYLOADS.items():
        uses = api.get(f"payload-iovs/uses?removed=1&{payload.format('old')}").ok()
        assert {(use["global_tag"], use["removed"]["revision"]) for use in uses} == {("a", 3)}
        plan = plans.pop()
        assert_no_large_table_is_read_sequentially(plan)
        assert index_condition(plan, f"payload_iov_{column}")
        assert index_condition(plan, f"payload_iov_history_{column}")
        # The changes by which a use began and ended.
        versions = scans_of(plan, "PayloadListVersion")
        assert [scan["Index Name"] for scan in versions] == ["payload_list_version"] * 2, plan
        assert all("version =" in scan["Index Cond"] for scan in versions), plan
        assert not plans


def index_condition(plan, index):
    """The condition by which the only scan of an index finds its entries."""
    [scan] = [node for node in nodes(plan) if node.get("Index Name") == index]
    return scan["Index Cond"]


def test_an_explanation_reads_few_entries_of_indexes(api, large):
    """Its statements are in a function, whose plans EXPLAIN does not show."""
    counts = []

    def execute(run, statement, parameters, many, context):
        if "cdb_point_at" not in statement:
            return run(statement, parameters, many, context)
        before = read_counts()
        result = run(statement, parameters, many, context)
        counts.append([after - earlier for earlier, after in zip(before, read_counts(), strict=True)])
        return result

    with connection.execute_wrapper(execute):
        for moment, reason in ((FIRST - 1, "not_started"), (77, "valid"), (LAST + 100, "ended")):
            for state in ("", "&rev=2"):
                path = f"payload-iovs/explain?gtName=a&majorIOV={moment}&minorIOV=0{state}"
                assert [one["reason"] for one in api.get(path).ok()] == [reason] * 2
                rows, entries = counts.pop()
                assert rows == 0, path
                assert 0 < entries < 100, path


def read_counts():
    """The numbers of rows that this transaction has read sequentially from the large tables, and of entries of their indexes."""
    with connection.connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT sum(pg_stat_get_xact_tuples_returned(large.oid)), sum((
                SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index WHERE indrelid = large.oid
            ))
            FROM pg_class AS large
            WHERE relname = ANY(%s)
            """,
            [list(LARGE_TABLES)],
        )
        return cursor.fetchone()
