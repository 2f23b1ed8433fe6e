"""EXPLAIN of the statements that a strategy sends for a query."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.strategies import own
from cdb_rest.strategies.indexes import complete_indexes
from cdb_rest.strategies.registry import OWN, Strategy
from cdb_rest.strategies.verdicts import Plan, Verdict, judge

EXPLAIN = named_sql.load("explain")
ADOPT_SETTINGS = named_sql.load("adopt_lookup_settings")
PREPARE = named_sql.load("prepare_lookup")
EXECUTE = named_sql.load("execute_lookup")
DEALLOCATE = named_sql.load("deallocate_lookup")

# The placeholders of the prepared statement, in the order of prepare_lookup.sql.
NUMBERED = {
    name: f"${number}"
    for number, name in enumerate(
        ("tag_id", "major", "minor", "moment", "only_valid", "inclusive", "as_objects"), start=1
    )
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict, the plans (parsed JSON) on which it is based, and the plans as text.

    Both lists have one plan for each statement, but `texts` is empty if no text was requested. The texts are from a
    later run than `plans`, so their numbers may differ.
    """

    verdict: Verdict
    plans: list[Plan]
    texts: list[str]


def explain(strategy: Strategy, query: LookupQuery, *, with_text: bool = False) -> Explanation:
    """Run `strategy` for `query`, then each of its statements twice with EXPLAIN, and judge the second, warm run.

    With `with_text`, a third run gives the plans as text. EXPLAIN runs in a transaction that is rolled back. Raises
    `GlobalTagNotFoundError`.
    """
    statements, rows = _sent(strategy, query)
    with transaction.atomic():
        with _explainable(strategy, query, statements) as explainable:
            plans = [_warm_plan(*statement) for statement in explainable]
            texts = [_text(*statement) for statement in explainable] if with_text else []
        # Reverts the settings of the lookup's function, also inside an outer transaction.
        transaction.set_rollback(True)
    missing = None if strategy.index in complete_indexes() else strategy.index
    return Explanation(judge(strategy.name, plans, rows=rows, missing_index=missing), plans, texts)


def _sent(strategy: Strategy, query: LookupQuery) -> tuple[list[tuple[str, Any]], int]:
    """Run a strategy. Returns the statements that it sent, with parameters, and the number of rows of the result."""
    statements = []

    def record(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: dict[str, Any]) -> Any:
        statements.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(record):
        text = strategy.run(query)
    return statements, len(orjson.loads(text))


@contextmanager
def _explainable(
    strategy: Strategy, query: LookupQuery, statements: list[tuple[str, Any]]
) -> Iterator[list[tuple[str, Any]]]:
    """A context manager that gives the statements to explain. It must be inside a transaction.

    The statements are those that were sent. But the service's own strategy calls an SQL function. For it, the result is
    the statement of that function as a prepared statement, with the settings of the function, so that it is planned as
    in the function.
    """
    if strategy is not OWN:
        yield statements
        return
    parameters = own.statement_parameters(query)
    with connection.cursor() as cursor:
        cursor.execute(ADOPT_SETTINGS)
        cursor.execute(PREPARE.replace("{lookup}", own.STATEMENT % NUMBERED))
        yield [(EXECUTE, parameters)]
        cursor.execute(DEALLOCATE)


def _warm_plan(sql: str, parameters: Any) -> Plan:
    _explain("JSON", sql, parameters)
    plan: Plan
    [([plan],)] = _explain("JSON", sql, parameters)
    return plan


def _text(sql: str, parameters: Any) -> str:
    return "\n".join(line for (line,) in _explain("TEXT", sql, parameters))


def _explain(form: str, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(EXPLAIN.replace("{format}", form).replace("{statement}", sql), parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
