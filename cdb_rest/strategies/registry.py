"""The registry of lookup strategies: the service's own, and the alternatives for comparison.

All give the same rows; their JSON texts may differ in white space. `sql/` has the statements of those that do not use
Django's ORM. `docs/requests.md#compare-the-lookup-strategies` describes the plans.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson
from django.conf import settings

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.lookup.model import LookupQuery, Row
from cdb_rest.strategies import implementations
from cdb_rest.strategies.indexes import ASCENDING, LOOKUP, MOMENT

TABLE = '"PayloadIOV"'


@dataclass(frozen=True, slots=True)
class Strategy:
    """A lookup strategy.

    - `description`: what it does, in one sentence.
    - `run`: returns the result of a lookup as JSON text; raises `GlobalTagNotFoundError`.
    - `index`: the name of the index for which it is designed.
    - `queries`: the number of SQL statements of a lookup, if its result is not empty and DEBUG is off.
    """

    name: str
    description: str
    run: Callable[[LookupQuery], str | bytes]
    index: str
    queries: int = 2


def _by_rows(find: Callable[[LookupQuery], Iterable[Row]]) -> Callable[[LookupQuery], bytes]:
    """A function that returns the rows of `find` as JSON."""

    def run(query: LookupQuery) -> bytes:
        rows = find(query)
        # orjson does not support named tuples.
        return orjson.dumps([row._asdict() if query.as_objects else tuple(row) for row in rows])

    return run


def _by_sql(file: str) -> Callable[[LookupQuery], bytes]:
    """A function that returns the rows of a statement in ``sql/`` as JSON.

    If a payload list of the tag shares rows, the statement reads the view instead of the table.
    """
    statement = named_sql.load(file)

    def find(query: LookupQuery) -> list[Row]:
        _, model = implementations.find_rows(query)
        parameters = {"tag": query.tag, "major": query.moment.major, "minor": query.moment.minor}
        found = fetch_all(statement.replace(TABLE, f'"{model._meta.db_table}"'), parameters)
        return [row for row in (Row(*columns) for columns in found) if query.accepts(row)]

    return _by_rows(find)


def _own(query: LookupQuery) -> str:
    # The debug toolbar would show only the call of the function instead of its statement.
    return implementations.look_up_by_statement(query) if settings.DEBUG else implementations.look_up_by_function(query)


OWN = Strategy(
    "sql_lateral",
    "The service's own: a function reads one entry for each list from the descending index on the combined moment.",
    _own,
    LOOKUP,
    queries=1,
)
STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            "orm_orderby",
            "Django's ORM sorts the candidates of each list by start and keeps the first (DISTINCT ON).",
            _by_rows(implementations.order_by),
            LOOKUP,
        ),
        Strategy(
            "orm_max",
            "Django's ORM finds the latest start of each list by GROUP BY, then the rows with these starts.",
            _by_rows(implementations.maximum),
            LOOKUP,
            queries=3,
        ),
        Strategy(
            "sql_distinct",
            "One statement sorts the candidates of each list by start and keeps the first (DISTINCT ON).",
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
            "LATERAL, with major and minor compared separately: major < x OR (major = x AND minor <= y).",
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
            "LATERAL on the combined moment, with a backward scan of an ascending index.",
            _by_sql("strategy_sql_lateral_asc"),
            ASCENDING,
        ),
        OWN,
    )
}
