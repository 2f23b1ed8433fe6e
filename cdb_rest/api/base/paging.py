"""Pages of lists: pagination, search, filters and sorting by query parameters.

docs/decisions/0014-libraries-considered.md says why no library does it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer
from rest_framework import serializers

from cdb_rest.api.base.conversion import Document, Shape, documents, one_of
from cdb_rest.connections.snapshot import long_reads
from cdb_rest.parsing.parameters import parse_integer
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.moment import OPEN

PAGE_SIZE = 25
LARGEST_PAGE_SIZE = 1000
Selected = TypeVar("Selected", bound=Model)


@dataclass(frozen=True)
class Browser:
    """Options for pages of one kind of object.

    - `shape`: the document of a row.
    - `rows`: returns all rows, unfiltered.
    - `rows_for`: returns the rows from which filters and `search` select, if they are others. Its arguments are that of
      `count`, and the text that is searched for.
    - `search`: the columns in which the parameter `search` is looked for, ignoring case and spaces around it.
    - `sort`: the values of the parameter `sort`, with their columns; the first one is the default.
    - `filters`: the parameters that select rows by the exact value of a column, with the columns.
    - `count`: returns the number of rows that the filters select, without reading the rows. Its argument has the values
      of the filters by parameter. It is used if there is no `search`. It counts among all rows, so a browser with
      `count` must not be used with the argument `rows` of `page`.
    - `newest_first`: whether the default order is descending.
    """

    shape: type[Shape]
    rows: Callable[[], QuerySet[Model]]
    search: tuple[str, ...]
    sort: Mapping[str, str]
    filters: Mapping[str, str] = field(default_factory=dict)
    count: Callable[[dict[str, str]], int] | None = None
    newest_first: bool = False
    rows_for: Callable[[dict[str, str], str], QuerySet[Model]] | None = None

    def wants_page(self, query: QueryDict) -> bool:
        """Whether the query string asks for a page instead of the complete list.

        Raises `InvalidInputError` if it has other parameters of a page, but not `page`: the complete list would ignore them.
        """
        if "page" in query:
            return True
        given = [name for name in ("page_size", "search", "sort", "order", *self.filters) if name in query]
        if given:
            message = f"{', '.join(given)} must be given together with page; add page=1."
            raise InvalidInputError(message, {name: [message] for name in given})
        return False

    def page(self, query: QueryDict, rows: QuerySet[Model] | None = None) -> Document:
        """The page that the query string selects, of all rows or of `rows`. Past the end, `results` is empty.

        Wrong values are not errors, as in nopayloaddb: a number out of range means the nearest one, and other texts the default.
        """
        number = _number(query, "page", default=1, largest=OPEN)
        size = _number(query, "page_size", default=PAGE_SIZE, largest=LARGEST_PAGE_SIZE)
        selected = {name: value for name in self.filters if (value := query.get(name))}
        text = query.get("search", "").strip()
        if rows is None:
            rows = self.rows_for(selected, text) if self.rows_for and (selected or text) else self.rows()
        rows = self.select(query, rows)
        first = (number - 1) * size
        # A search may have to read a whole table.
        with long_reads():
            count = self.count(selected) if self.count and not text else rows.count()
            selected_rows = rows.order_by(*self._order(query))[first : first + size]
            results = documents(self.shape, selected_rows) if first < count else []
        return {
            "count": count,
            "page": number,
            "page_size": size,
            "total_pages": max(1, -(-count // size)),
            "results": results,
        }

    def select(self, query: Mapping[str, str], rows: QuerySet[Selected]) -> QuerySet[Selected]:
        """Those of the rows that the filters and `search` of a query string select."""
        rows = rows.filter(**{column: value for name, column in self.filters.items() if (value := query.get(name))})
        text = query.get("search", "").strip()
        return rows.filter(_any_contains(self.search, text)) if text else rows

    def _order(self, query: QueryDict) -> list[str]:
        default = next(iter(self.sort.values()))
        column = self.sort.get(query.get("sort", ""), default)
        # As with "sort", an unknown value means the default.
        order = query.get("order")
        is_descending = order != "asc" if self.newest_first else order == "desc"
        sign = "-" if is_descending else ""
        # The id breaks ties, so that each row is on one page only.
        return [sign + column] if column == "id" else [sign + column, sign + "id"]

    def parameters(self) -> list[OpenApiParameter]:
        """The query parameters, for the OpenAPI description."""
        described = {
            "page": (int, "Number of the page, from 1. Without it, routes that can return the complete list do so."),
            "page_size": (int, f"Rows per page, 1 to {LARGEST_PAGE_SIZE}; {PAGE_SIZE} by default."),
            "search": (str, "Only rows that contain this text, ignoring case and spaces around it."),
            "sort": (str, f"One of {', '.join(self.sort)}; anything else means {next(iter(self.sort))}."),
            "order": (str, "asc; anything else means desc." if self.newest_first else "desc; anything else means asc."),
        } | {name: (str, f"Only rows with this {name.replace('_', ' ')}, by name.") for name in self.filters}
        return [OpenApiParameter(name, kind, description=text) for name, (kind, text) in described.items()]

    def list_or_page(self, item: type[Shape]) -> PolymorphicProxySerializer:
        """The responses of a list route for the OpenAPI description: all items, or a page."""
        return one_of(item(many=True), self.page_shape())

    def page_shape(self) -> Shape:
        """A page, for the OpenAPI description."""
        return _page_of(self.shape)()


@cache
def _page_of(shape: type[Shape]) -> type[Shape]:
    members = {
        "count": serializers.IntegerField(),
        "page": serializers.IntegerField(),
        "page_size": serializers.IntegerField(),
        "total_pages": serializers.IntegerField(),
        "results": shape(many=True),
    }
    return type(f"{shape.__name__}Page", (Shape,), members)


def _number(query: QueryDict, name: str, *, default: int, largest: int) -> int:
    """The integer in 1…`largest` that is nearest to a parameter, or the default if it is missing or not an integer."""
    number = parse_integer(query.get(name, "").strip())
    return default if number is None else min(max(number, 1), largest)


def _any_contains(columns: tuple[str, ...], text: str) -> Q:
    condition = Q()
    for column in columns:
        condition |= Q(**{f"{column}__icontains": text})
    return condition
