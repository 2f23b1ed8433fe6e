"""The changes of all global tags, in the order in which programs that follow them read them."""

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.api.base.conversion import Shape, documents
from cdb_rest.api.base.descriptions import response_example
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.changes import ChangeItem
from cdb_rest.api.examples import CHANGE
from cdb_rest.history.feed import Page, page_after
from cdb_rest.http.caching import digest_of, unchanged
from cdb_rest.models import GlobalTagChange
from cdb_rest.parsing.parameters import parse_integer
from cdb_rest.rules.errors import invalid_field, quoted
from cdb_rest.rules.moment import OPEN
from cdb_rest.writes.positions import number_changes

# The cursor of the present.
NOW = "now"
LIMIT, LARGEST_LIMIT = 100, 1000
# How long a client should wait if there is nothing new.
WAIT_SECONDS = 5


class ChangeFeed(Shape):
    """Changes of all global tags. No change that is committed later comes before them.

    `cursor` is the parameter `after` of the next request. If there is `more`, send it at once. `lost` says that the database has
    lost the change of this request's cursor.
    """

    changes = ChangeItem(many=True)
    cursor = serializers.CharField()
    more = serializers.BooleanField()
    lost = serializers.BooleanField()


class ChangeFeedView(StrictView):
    """The changes of all global tags after a cursor, each once, with all changes by one write in the same response."""

    query = [
        OpenApiParameter(
            "after", str, description="The cursor of an earlier response; now for no changes, but a cursor."
        ),
        OpenApiParameter(
            "limit",
            {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": LIMIT},
            description="The changes of at most so many writes.",
        ),
    ]

    @extend_schema(
        summary="Follow the changes of all global tags",
        responses=ChangeFeed,
        examples=[response_example({"changes": [CHANGE], "cursor": "1", "more": False, "lost": False})],
    )
    def get(self, request: Request) -> HttpResponseBase:
        after, limit = (request.query_params.get(name) for name in ("after", "limit"))
        position = _integer("after", after, 0, 0, OPEN, f"the cursor of a response, or {NOW}") if after != NOW else None
        writes = _integer("limit", limit, LIMIT, 1, LARGEST_LIMIT, f"an integer from 1 to {LARGEST_LIMIT}")
        newest = number_changes()
        if position is None:
            found = Page(GlobalTagChange.objects.none(), newest, more=False, lost=False)
        else:
            found = page_after(position, writes)
        etag = f'"{digest_of("changes", position, found.cursor, found.more, found.lost)}"'
        response: HttpResponseBase = unchanged(request, etag) or Response(
            {
                "changes": documents(ChangeItem, found.changes),
                "cursor": str(found.cursor),
                "more": found.more,
                "lost": found.lost,
            }
        )
        response["ETag"] = etag
        response["Cache-Control"] = "private, no-cache"
        response["Retry-After"] = str(0 if found.more else WAIT_SECONDS)
        return response


def _integer(name: str, text: str | None, default: int, least: int, most: int, allowed: str) -> int:
    """The integer of a parameter. Raises `InvalidInputError`, which says what is allowed."""
    number = default if text is None else parse_integer(text)
    if number is None or not least <= number <= most:
        raise invalid_field(name, f"{name} must be {allowed} (got {quoted(text)}).")
    return number
