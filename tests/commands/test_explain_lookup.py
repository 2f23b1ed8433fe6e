"""manage.py explain_lookup, and the plans that it finds."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from cdb_rest.strategies.registry import STRATEGIES
from tests.plans import vacuum

pytestmark = pytest.mark.django_db
LISTS, ROWS = 20, 2000


def explain(*arguments, tag="tag"):
    out = StringIO()
    call_command("explain_lookup", "--global-tag", tag, *arguments, stdout=out)
    return out.getvalue()


def explanations(*arguments):
    return {found["strategy"]: found for found in json.loads(explain("--json", *arguments))}


def nodes(node):
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)


@pytest.fixture
def tag(build):
    """A tag large enough for PostgreSQL to choose as it does for those of experiments."""
    tag = build.tag()
    for number in range(LISTS):
        payload_list = build.list(tag, f"Type{number}")
        with connection.cursor() as cursor:
            cursor.execute(
                'INSERT INTO "PayloadIOV" (payload_url, major_iov, minor_iov, payload_list_id) '
                "SELECT 'file', major, 0, %s FROM generate_series(0, %s - 1) AS major ORDER BY major DESC",
                [payload_list.id, ROWS],
            )
    vacuum("PayloadIOV", "PayloadList", "PayloadType", "GlobalTag")


def test_each_strategy_has_the_plan_that_its_name_promises(tag, strategy_indexes):
    found = explanations("--moment", "500", "0")
    assert list(found) == list(STRATEGIES)
    assert all(one["missing_index"] is None for one in found.values())

    def scan(name):
        """The scan of the IOVs: its node, index, rows that the filter removes, and pages of the table, in all its loops."""
        [node] = [
            one
            for plan in found[name]["plans"]
            for one in nodes(plan["Plan"])
            # The service's own has a second one for the past of shared lists, which is not executed.
            if one.get("Index Name", "").startswith("payload_iov") and one["Actual Loops"]
        ]
        removed = node.get("Rows Removed by Filter", 0) * node["Actual Loops"]
        return node["Node Type"], node["Scan Direction"], node["Index Name"], removed, node.get("Heap Fetches", 0)

    moment, ascending = "payload_iov_strategy_moment", "payload_iov_strategy_ascending"
    assert scan("sql_lateral_pair")[:3] == ("Index Scan", "Backward", moment) or scan("sql_lateral_pair")[2] == moment
    assert scan("sql_lateral_pair")[3] == LISTS * (ROWS - 501)
    assert scan("sql_lateral_row")[2:4] == (moment, 0)
    assert scan("sql_lateral_asc") == ("Index Only Scan", "Backward", ascending, 0, 0)
    assert scan("sql_lateral") == ("Index Only Scan", "Forward", "payload_iov_lookup", 0, 0)
    assert len(found["orm_max"]["plans"]) == 3
    # The statement itself was explained, planned for any moment, and not the call of its function.
    assert "$4" in json.dumps(found["sql_lateral"]["plans"])


@pytest.mark.django_db(transaction=True)
def test_a_missing_index_is_said_and_the_connection_is_left_as_it_was(tag):
    out = explain()
    assert len([line for line in out.splitlines() if "manage.py strategy_indexes create" in line]) == 3
    assert out.splitlines()[0].startswith("strategy ")
    assert [line.split()[0] for line in out.splitlines()[1 : 1 + len(STRATEGIES)]] == list(STRATEGIES)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('enable_seqscan'), (SELECT count(*) FROM pg_prepared_statements)")
        assert cursor.fetchone() == ("on", 0)
