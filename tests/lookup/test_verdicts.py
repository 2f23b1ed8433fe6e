"""What `explain_lookup` reads from plans. The nodes are from PostgreSQL, for a tag of 100 lists with 5,000 IOVs each."""

import pytest

from cdb_rest.strategies.verdicts import Scan, judge, scans

IOVS = {"Relation Name": "PayloadIOV", "Parallel Aware": False}
INDEX_ONLY = IOVS | {
    "Node Type": "Index Only Scan",
    "Scan Direction": "Forward",
    "Index Name": "payload_iov_lookup",
    "Actual Rows": 1.0,
    "Actual Loops": 100,
    "Index Cond": "((payload_list_id = list.id) AND (comb_iov <= $4))",
    "Heap Fetches": 3,
}
BACKWARD = INDEX_ONLY | {
    "Scan Direction": "Backward",
    "Index Name": "payload_iov_strategy_ascending",
    "Heap Fetches": 0,
}
FILTERING = IOVS | {
    "Node Type": "Index Scan",
    "Scan Direction": "Forward",
    "Index Name": "payload_iov_strategy_moment",
    "Actual Rows": 1.0,
    "Actual Loops": 100,
    "Index Cond": "(payload_list_id = list.id)",
    "Filter": "((major_iov < 577090037) OR (...))",
    "Rows Removed by Filter": 3655,
}
PARALLEL = IOVS | {
    "Node Type": "Seq Scan",
    "Parallel Aware": True,
    "Actual Rows": 44834.33,
    "Actual Loops": 3,
    "Filter": "(comb_iov <= 577090037.0000000000271041745)",
    "Rows Removed by Filter": 121832,
}
BITMAP = IOVS | {
    "Node Type": "Bitmap Heap Scan",
    "Actual Rows": 2.0,
    "Actual Loops": 100,
    "Recheck Cond": "...",
    "Plans": [
        {
            "Node Type": "BitmapOr",
            "Plans": [
                {"Node Type": "Bitmap Index Scan", "Index Name": "payload_iov_strategy_moment", "Index Cond": "(...)"},
                {"Node Type": "Bitmap Index Scan", "Index Name": "payload_iov_strategy_moment", "Index Cond": "(...)"},
            ],
        }
    ],
}
NEVER = FILTERING | {"Actual Rows": 0.0, "Actual Loops": 0, "Rows Removed by Filter": 0}


def plan(*nodes, hit=10, read=2):
    """A whole plan around some nodes, with nodes beside them that read other tables."""
    other = {"Node Type": "Seq Scan", "Relation Name": "PayloadList", "Filter": "...", "Rows Removed by Filter": 7}
    root = {
        "Node Type": "Sort",
        "Shared Hit Blocks": hit,
        "Shared Read Blocks": read,
        "Plans": [other, {"Node Type": "Nested Loop", "Plans": list(nodes)}],
    }
    return {"Plan": root, "Planning Time": 0.25, "Execution Time": 1.24}


@pytest.mark.parametrize(
    ("node", "scan"),
    [
        (INDEX_ONLY, Scan("Index Only Scan", ("payload_iov_lookup",), "Index Cond alone", 100, 0, 3)),
        (
            BACKWARD,
            Scan("Index Only Scan Backward", ("payload_iov_strategy_ascending",), "Index Cond alone", 100, 0, 0),
        ),
        (
            FILTERING,
            Scan("Index Scan", ("payload_iov_strategy_moment",), "Index Cond and Filter", 365_600, 365_500, 365_600),
        ),
        (PARALLEL, Scan("Parallel Seq Scan", (), "Filter alone", 499_999, 365_496, 499_999)),
        (BITMAP, Scan("Bitmap Heap Scan", ("payload_iov_strategy_moment",), "Index Cond alone", 200, 0, 200)),
        (NEVER, Scan("Index Scan", ("payload_iov_strategy_moment",), "Index Cond and Filter", 0, 0, 0)),
    ],
)
def test_a_scan_is_read_with_its_totals(node, scan):
    assert scans(plan(node)["Plan"]) == [scan]


def test_a_plan_that_does_not_read_the_table_has_no_scan():
    assert scans(plan()["Plan"]) == []
    assert judge("orm_max", [plan()], rows=0).line.startswith("orm_max: -, -, 0 rows removed, ")


def test_the_line_of_an_index_only_scan():
    assert judge("sql_lateral", [plan(INDEX_ONLY)], rows=100).line == (
        "sql_lateral: Index Only Scan of payload_iov_lookup, Index Cond alone, 0 rows removed, 3 heap fetches, 12 buffers, "
        "100 rows, 1.2 ms"
    )


def test_the_line_of_a_scan_that_reads_the_table_says_what_a_heap_fetch_is():
    assert judge("sql_lateral_pair", [plan(FILTERING)], rows=100).line == (
        "sql_lateral_pair: Index Scan of payload_iov_strategy_moment, Index Cond and Filter, 365,500 rows removed, "
        "365,600 heap fetches (one per row), 12 buffers, 100 rows, 1.2 ms"
    )


def test_several_statements_and_scans_are_counted_together():
    verdict = judge("orm_max", [plan(), plan(PARALLEL), plan(INDEX_ONLY, INDEX_ONLY)], rows=100)
    assert (verdict.kind, verdict.index) == ("Parallel Seq Scan + Index Only Scan", "payload_iov_lookup")
    assert verdict.condition == "Filter alone + Index Cond alone"
    assert (verdict.rows_read, verdict.rows_removed, verdict.heap_fetches) == (500_199, 365_496, 500_005)
    assert (verdict.buffers, verdict.planning_ms, verdict.execution_ms) == (36, 0.75, pytest.approx(3.72))
    assert "Parallel Seq Scan + Index Only Scan of payload_iov_lookup, Filter alone + Index Cond alone" in verdict.line


def test_a_missing_index_is_named():
    verdict = judge("sql_lateral_asc", [plan(PARALLEL)], rows=1, missing_index="payload_iov_strategy_ascending")
    advice = "its index payload_iov_strategy_ascending is missing: manage.py strategy_indexes create"
    assert verdict.line.endswith(f" ms; {advice}")
