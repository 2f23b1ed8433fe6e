"""EXPLAIN of the statements that a strategy really sends, with the parameters of a question."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from django.db import connection, transaction

from cdb_rest import named_sql
from cdb_rest.lookup.question import Question
from cdb_rest.strategies import own
from cdb_rest.strategies.indexes import complete_indexes
from cdb_rest.strategies.registry import OWN, Strategy
from cdb_rest.strategies.verdicts import Plan, Verdict, judge

EXPLAIN = named_sql.load("explain")
ADOPT_SETTINGS = named_sql.load("adopt_lookup_settings")
PREPARE = named_sql.load("prepare_lookup")
EXECUTE = named_sql.load("execute_lookup")
FORGET = named_sql.load("forget_lookup")

# In the order of prepare_lookup.sql.
NUMBERED = {
    name: f"${number}"
    for number, name in enumerate(
        ("tag_id", "major", "minor", "moment", "only_valid", "inclusive", "as_objects"), start=1
    )
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict, the plans it stands on as JSON, and, where asked for, the same statements' plans as text."""

    verdict: Verdict
    plans: list[Plan]
    texts: list[str]


def explain(strategy: Strategy, question: Question, *, with_text: bool = False) -> Explanation:
    """Run what `strategy` sends for `question` twice, and explain the second time. Raises `GlobalTagNotFoundError`."""
    statements, rows = _sent(strategy, question)
    with transaction.atomic():
        with _explainable(strategy, question, statements) as explainable:
            plans = [_warm_plan(*statement) for statement in explainable]
            texts = [_text(*statement) for statement in explainable] if with_text else []
        # Takes the settings of the lookup's function back, even where a transaction is around this one.
        transaction.set_rollback(True)
    missing = None if strategy.index in complete_indexes() else strategy.index
    return Explanation(judge(strategy.name, plans, rows=rows, missing_index=missing), plans, texts)


def _sent(strategy: Strategy, question: Question) -> tuple[list[tuple[str, Any]], int]:
    """The statements of an answer with their parameters, and how many rows it has."""
    statements = []

    def note(execute: Callable[..., Any], sql: str, parameters: Any, many: bool, context: dict[str, Any]) -> Any:
        statements.append((sql, parameters))
        return execute(sql, parameters, many, context)

    with connection.execute_wrapper(note):
        answer = strategy.answer(question)
    return statements, len(orjson.loads(answer))


@contextmanager
def _explainable(
    strategy: Strategy, question: Question, statements: list[tuple[str, Any]]
) -> Iterator[list[tuple[str, Any]]]:
    """The statements as they were sent; in place of a call of the lookup's function its statement, planned as inside of it."""
    if strategy is not OWN:
        yield statements
        return
    parameters = own.statement_parameters(question)
    with connection.cursor() as cursor:
        cursor.execute(ADOPT_SETTINGS)
        cursor.execute(PREPARE.replace("{lookup}", own.STATEMENT % NUMBERED))
        yield [(EXECUTE, parameters)]
        cursor.execute(FORGET)


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
