"""The plans with which PostgreSQL executes a lookup."""

import pytest
from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.models.payload_list import PRESENT
from tests.plans import nodes, vacuum

PARAMETERS = {
    "tag_id": "bigint", "major": "bigint", "minor": "bigint", "moment": "numeric", "only_valid": "boolean",
    "inclusive": "boolean", "as_objects": "boolean",
}  # fmt: skip


def explain(tag_id, settings):
    """The generic plan of the lookup's own statement, run for a moment in the middle."""
    numbered = {name: f"${number}" for number, name in enumerate(PARAMETERS, 1)}
    with connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute(f"SET LOCAL {name} = {value}")
        cursor.execute(f"PREPARE plan ({', '.join(PARAMETERS.values())}) AS {named_sql.load('lookup') % numbered}")
        cursor.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE plan (%s, 2500, 0, 2500, false, false, false)", [tag_id]
        )
        return cursor.fetchone()[0][0]["Plan"]


def function_settings():
    """The settings that the lookup's function runs with, as the database has them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT proconfig FROM pg_proc WHERE proname = 'cdb_lookup'")
        return dict(item.split("=", 1) for item in cursor.fetchone()[0])


def function_source():
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'cdb_lookup'")
        return cursor.fetchone()[0]


def executed(plan):
    return [node for node in nodes(plan) if node["Actual Loops"]]


def probe(plan):
    """The node that reads the IOVs."""
    (found,) = [node for node in executed(plan) if node.get("Relation Name") == "PayloadIOV"]
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_shared", [False, True])
def test_an_index_only_scan_by_index_condition_alone_stops_at_its_first_row(api, large_tag, is_shared):
    tag_id = api.post(f"cloneGlobalTag/{large_tag.name}/copy").ok()["id"] if is_shared else large_tag.id
    vacuum("PayloadIOV", "PayloadList")
    with transaction.atomic():
        plan = explain(tag_id, function_settings())
    # With a few lists to choose from, PostgreSQL may well look at all; what must never be filtered are IOVs. Of the one that was
    # found, the version is compared.
    filters = {node.get("Relation Name"): node["Filter"] for node in executed(plan) if "Filter" in node}
    assert filters.pop(None) == "(present.added_in <= list.rows_version)"
    assert filters.keys() <= {"PayloadList", "PayloadType"}
    assert "PayloadIOVHistory" not in {node.get("Relation Name") for node in executed(plan)}
    scan = probe(plan)
    assert scan["Node Type"] == "Index Only Scan"
    assert scan["Index Name"] == "payload_iov_lookup"
    assert "payload_list_id" in scan["Index Cond"] and "comb_iov <=" in scan["Index Cond"]
    assert scan["Heap Fetches"] == 0
    assert scan["Actual Rows"] == 1 and scan["Actual Loops"] == 2


@pytest.mark.django_db(transaction=True)
def test_tables_that_were_never_analysed_are_read_by_the_same_index(large_tag):
    with transaction.atomic():
        scan = probe(explain(large_tag.id, function_settings()))
    assert scan["Index Name"] == "payload_iov_lookup"
    assert "comb_iov <=" in scan["Index Cond"]
    assert "Filter" not in scan
    assert scan["Actual Rows"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_list_is_compiled_in_the_order_of_the_index_alone(large_tag):
    vacuum("PayloadIOV", "PayloadList")
    values = {"list_id": large_tag.payload_lists.first().id, "payload_type": "Gain", "version": PRESENT}
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + named_sql.load("compile_rows"), values)
        plan = cursor.fetchone()[0][0]["Plan"]
    scan = probe(plan)
    assert (scan["Node Type"], scan["Index Name"]) == ("Index Only Scan", "payload_iov_lookup")
    assert "payload_list_id" in scan["Index Cond"]
    assert scan["Actual Rows"] == 5000


@pytest.mark.django_db
def test_the_function_runs_this_very_statement_and_plans_it_once():
    class Same(dict):
        def __missing__(self, name):
            return name

    assert named_sql.load("lookup") % Same() in function_source()
    assert function_settings()["plan_cache_mode"] == "force_generic_plan"
