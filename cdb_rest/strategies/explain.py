"""EXPLAIN of the statements that a strategy sends for a query."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.lookup.model import LookupQuery
from cdb_rest.strategies import implementations
from cdb_rest.strategies.indexes import complete_indexes
from cdb_rest.strategies.registry import OWN, Strategy

EXPLAIN = named_sql.load("explain")
ADOPT_SETTINGS = named_sql.load("adopt_lookup_settings")
PREPARE = named_sql.load("prepare_lookup")
EXECUTE = named_sql.load("execute_lookup")
DEALLOCATE = named_sql.load("deallocate_lookup")

# The placeholders of the prepared statement, in the order of prepare_lookup.
NUMBERED = {
    name: f"${number}"
    for number, name in enumerate(
        ("tag_id", "major", "minor", "moment", "only_valid", "inclusive", "as_objects"), start=1
    )
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plans of a strategy's statements, as parsed JSON, and as text if it was requested.

    `missing_index` is the name of the strategy's index if the database does not have it. The texts are from a later run than
    `plans`, so their numbers may differ.
    """

    strategy: str
    missing_index: str | None
    plans: list[dict[str, Any]]
    texts: list[str]

    def total(self, name: str) -> float:
        """The sum of a figure of all plans: `Planning Time`, `Execution Time` (in milliseconds), or one of the root nodes."""
        return float(sum(plan.get(name, plan["Plan"].get(name, 0)) for plan in self.plans))

    def indexes(self) -> list[str]:
        """The names of the indexes that the plans use."""
        return sorted(
            {node["Index Name"] for plan in self.plans for node in _nodes(plan["Plan"]) if "Index Name" in node}
        )


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def explain(strategy: Strategy, query: LookupQuery, *, with_text: bool = False) -> Explanation:
    """Run `strategy` for `query`, then each of its statements twice with EXPLAIN: the plans are those of the second, warm run.

    With `with_text`, a third run gives the plans as text. EXPLAIN runs in a transaction that is rolled back. Raises
    `GlobalTagNotFoundError`.
    """
    statements = _sent(strategy, query)
    with transaction.atomic():
        with _explainable(strategy, query, statements) as explainable:
            plans = [_warm_plan(*statement) for statement in explainable]
            texts = [_text(*statement) for statement in explainable] if with_text else []
        # Reverts the settings of the lookup's function, also inside an outer transaction.
        transaction.set_rollback(True)
    missing = None if strategy.index in complete_indexes() else strategy.index
    return Explanation(strategy.name, missing, plans, texts)


def _sent(strategy: Strategy, query: LookupQuery) -> list[tuple[str, Any]]:
    """Run a strategy. Returns the statements that it sent, with parameters."""
    statements = []

    def record(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: dict[str, Any]) -> Any:
        statements.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(record):
        strategy.run(query)
    return statements


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
    parameters = implementations.statement_parameters(query)
    with connection.cursor() as cursor:
        cursor.execute(ADOPT_SETTINGS)
        cursor.execute(PREPARE.replace("{lookup}", implementations.STATEMENT % NUMBERED))
        yield [(EXECUTE, parameters)]
        cursor.execute(DEALLOCATE)


def _warm_plan(sql: str, parameters: Any) -> dict[str, Any]:
    _explain("JSON", sql, parameters)
    plan: dict[str, Any]
    [([plan],)] = _explain("JSON", sql, parameters)
    return plan


def _text(sql: str, parameters: Any) -> str:
    return "\n".join(line for (line,) in _explain("TEXT", sql, parameters))


def _explain(form: str, sql: str, parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(EXPLAIN.replace("{format}", form).replace("{statement}", sql), parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
