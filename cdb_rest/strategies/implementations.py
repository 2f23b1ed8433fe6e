"""Lookups of strategies, to compare their speed: the function of the service, the statement inside it, and two by the ORM."""

from collections.abc import Iterable
from itertools import starmap
from typing import Any

from django.db.models import Exists, F, Max, OuterRef, QuerySet

from cdb_rest import named_sql
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.lookup.model import LookupQuery, Row, parameters_of
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.models.payload_iov import ListedPayloadIOV
from cdb_rest.rules.errors import GlobalTagNotFoundError

STATEMENT = named_sql.load("lookup")


def look_up_by_function(query: LookupQuery) -> str:
    """The result of a lookup as JSON text, by the SQL function. Raises `GlobalTagNotFoundError`."""
    text = look_up_here(query).text
    if text is None:
        raise AssertionError("a lookup without validators must return a text")
    return text


def look_up_by_statement(query: LookupQuery) -> str:
    """The same result by the statement inside the SQL function, so that tools can show its plan.

    It takes one more round trip. Raises `GlobalTagNotFoundError`.
    """
    text: str
    [(text,)] = fetch_all(STATEMENT, statement_parameters(query))
    return text


def statement_parameters(query: LookupQuery) -> dict[str, Any]:
    """The parameters of `STATEMENT`. Reads the id of the tag. Raises `GlobalTagNotFoundError`."""
    tag_id = GlobalTag.objects.filter(name=query.tag).values_list("id", flat=True).first()
    if tag_id is None:
        raise GlobalTagNotFoundError(query.tag)
    return {"tag_id": tag_id, "moment": query.moment.combined} | parameters_of(query)


PATHS = (
    "payload_list__payload_type__name",
    "payload_url",
    "checksum",
    "size",
    "major_iov",
    "minor_iov",
    "major_iov_end",
    "minor_iov_end",
    "extra",
)


def order_by(query: LookupQuery) -> list[Row]:
    """The rows of the lookup: sorts the candidates, latest start first, and keeps the first of each list (DISTINCT ON).

    Raises `GlobalTagNotFoundError`.
    """
    latest = _candidates(query).order_by("payload_list", F("comb_iov").desc()).distinct("payload_list")
    return _rows(query, latest.values_list(*PATHS))


def maximum(query: LookupQuery) -> list[Row]:
    """The rows of the lookup: finds the latest start of each list by GROUP BY, then the rows with these starts.

    Raises `GlobalTagNotFoundError`.
    """
    candidates = _candidates(query)
    starts = dict(candidates.values_list("payload_list").annotate(Max("comb_iov")))
    rows = candidates.filter(payload_list__in=starts, comb_iov__in=set(starts.values()))
    latest = (
        columns
        for list_id, start, *columns in rows.values_list("payload_list", "comb_iov", *PATHS)
        if starts[list_id] == start
    )
    return _rows(query, latest)


def find_rows(query: LookupQuery) -> tuple[int, type[PayloadIOV | ListedPayloadIOV]]:
    """The id of the tag, and the model of its rows: the view `ListedPayloadIOV` if a list shares rows, otherwise the table.

    Raises `GlobalTagNotFoundError`.
    """
    shared = PayloadList.objects.filter(global_tag=OuterRef("id"), base_list_id__isnull=False)
    found = GlobalTag.objects.filter(name=query.tag).values_list("id", Exists(shared)).first()
    if found is None:
        raise GlobalTagNotFoundError(query.tag)
    return found[0], ListedPayloadIOV if found[1] else PayloadIOV


def _candidates(query: LookupQuery) -> QuerySet[Any]:
    tag_id, model = find_rows(query)
    return model.objects.filter(payload_list__global_tag=tag_id, comb_iov__lte=query.moment.combined)


def _rows(query: LookupQuery, found: Iterable[Iterable[Any]]) -> list[Row]:
    return sorted(row for row in starmap(Row, found) if query.accepts(row))
