"""All ways to answer a lookup, side by side: the service's own, and those that it was measured against.

All of them give the same answer. `sql/` has the statements, and `docs/operations.md` what PostgreSQL makes of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson
from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.connections.reads import ask
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.lookup.question import Question, Row
from cdb_rest.models import GlobalTag
from cdb_rest.strategies import orm, own
from cdb_rest.strategies.indexes import ASCENDING, LOOKUP, MOMENT


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to answer: its name, what it does in a sentence, the index it is made for, and how many SQL statements it takes.

    `answer` returns the JSON text of the answer and raises `GlobalTagNotFoundError`.
    """

    name: str
    sentence: str
    answer: Callable[[Question], str | bytes]
    index: str
    queries: int = 1


def _by_rows(find: Callable[[Question], Iterable[Row]]) -> Callable[[Question], bytes]:
    """Make JSON of the rows that `find` returns."""

    def answer(question: Question) -> bytes:
        rows = find(question)
        # orjson refuses named tuples.
        return orjson.dumps([row._asdict() if question.as_objects else tuple(row) for row in rows])

    return answer


def _by_sql(file: str) -> Callable[[Question], bytes]:
    """Make JSON of the rows of a statement under ``sql/``. Only an empty answer takes a second one, to look for the tag."""
    statement = named_sql.load(file)

    def find(question: Question) -> list[Row]:
        parameters = {"tag": question.tag, "major": question.moment.major, "minor": question.moment.minor}
        rows = [Row(*columns) for columns in ask(statement, parameters)]
        if not rows and not GlobalTag.objects.filter(name=question.tag).exists():
            raise GlobalTagNotFoundError(question.tag)
        return [row for row in rows if question.wants(row)]

    return _by_rows(find)


def _own(question: Question) -> str:
    # A call of the function would show the debug toolbar nothing but that call.
    return own.answer_in_the_open(question) if settings.DEBUG else own.answer(question)


OWN = Strategy(
    "sql_lateral",
    "The service's own: a function takes one entry for each list off the descending index on the combined moment.",
    _own,
    LOOKUP,
)
STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            "orm_orderby",
            "Django's ORM sorts each list's candidates by their starts and keeps the first (DISTINCT ON).",
            _by_rows(orm.order_by),
            LOOKUP,
            queries=2,
        ),
        Strategy(
            "orm_max",
            "Django's ORM finds the latest start of each list by GROUP BY, then the rows that have these starts.",
            _by_rows(orm.maximum),
            LOOKUP,
            queries=3,
        ),
        Strategy(
            "sql_distinct",
            "One statement sorts each list's candidates by their starts and keeps the first (DISTINCT ON).",
            _by_sql("strategy_sql_distinct"),
            LOOKUP,
        ),
        Strategy(
            "sql_group",
            "One statement finds the latest start of each list by GROUP BY and joins the table with itself.",
            _by_sql("strategy_sql_group"),
            LOOKUP,
        ),
        Strategy(
            "sql_lateral_pair",
            "LATERAL, with the moment compared half by half: major < x OR (major = x AND minor <= y).",
            _by_sql("strategy_sql_lateral_pair"),
            MOMENT,
        ),
        Strategy(
            "sql_lateral_row",
            "LATERAL, with the moment compared as a row: (major, minor) <= (x, y).",
            _by_sql("strategy_sql_lateral_row"),
            MOMENT,
        ),
        Strategy(
            "sql_lateral_asc",
            "LATERAL on the combined moment, by an ascending index that is read backwards.",
            _by_sql("strategy_sql_lateral_asc"),
            ASCENDING,
        ),
        OWN,
    )
}
