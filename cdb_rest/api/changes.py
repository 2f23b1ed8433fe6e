"""Change log: who changed a global tag, when and how. The log of a deleted tag is kept."""

from collections.abc import Callable, Generator, Mapping, Sequence

from django.db.models import QuerySet
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.api.base.conversion import Shape, document_of
from cdb_rest.api.base.descriptions import in_path, response_example
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import array, respond
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.examples import CHANGE, page_of
from cdb_rest.history.changes import of_payload_type, read_change
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.parsing.parameters import parse_number, parse_time
from cdb_rest.rules.errors import ChangeNotFoundError, GlobalTagNotFoundError, NotFoundError, quoted


class ChangeItem(Shape):
    """A change of a global tag in a list, with the numbers of removed and added IOVs.

    For an accepted request, `request` is its number, and `requested_by` the person or program that made it.
    """

    global_tag = serializers.CharField()
    revision = serializers.IntegerField()
    time = serializers.DateTimeField(source="created")
    actor = serializers.CharField()
    action = serializers.CharField()
    comment = serializers.CharField()
    payload_iovs_before = serializers.IntegerField()
    payload_iovs_after = serializers.IntegerField()
    request = serializers.IntegerField(source="source.request", allow_null=True)
    requested_by = serializers.CharField(source="source.requested_by", allow_null=True)


class ChangeDocument(ChangeItem):
    """A change of a global tag: `before` is what it removed, `after` what it added.

    For a clone or a scenario, `after` also has the source.
    """

    before = serializers.JSONField()
    after = serializers.JSONField()


CHANGES = Browser(
    shape=ChangeItem,
    rows=GlobalTagChange.objects.all,
    search=("comment", "actor"),
    sort={"revision": "revision"},
    filters={"action": "action", "actor": "actor"},
    newest_first=True,
)

PARAMETERS = [
    OpenApiParameter("payload_type", str, description="Only changes of this payload type, by name."),
    OpenApiParameter("since", str, description="Only changes at this time or later."),
    OpenApiParameter("until", str, description="Only changes before this time."),
]


def select_changes(parameters: Mapping[str, str], changes: QuerySet[GlobalTagChange]) -> QuerySet[GlobalTagChange]:
    """The changes that `PARAMETERS` select. Raises `InvalidInputError` for a time that is none."""
    if parameters.get("payload_type"):
        changes = of_payload_type(changes, parameters["payload_type"])
    if parameters.get("since"):
        changes = changes.filter(created__gte=parse_time("since", parameters["since"]))
    if parameters.get("until"):
        changes = changes.filter(created__lt=parse_time("until", parameters["until"]))
    return changes


TAG = in_path("name", "Name of the global tag.", "tiny")


class ChangeListView(StrictView):
    """The changes of a global tag, newest first, page by page."""

    query = [*CHANGES.parameters(), *PARAMETERS]

    @extend_schema(
        summary="List the changes of a global tag",
        parameters=[TAG],
        responses=CHANGES.page_shape(),
        examples=[response_example(page_of(CHANGE, 1))],
    )
    def get(self, request: Request, name: str) -> Response:
        changes = select_changes(request.query_params, GlobalTagChange.objects.filter(global_tag=name))
        _check_existed(name)
        return Response(CHANGES.page(request.query_params, changes))


class ChangeView(StrictView):
    """One change of a global tag, with what it removed and what it added. It is streamed and may have any size."""

    @extend_schema(
        summary="Get a change of a global tag",
        parameters=[TAG, in_path("revision", "Revision of the tag after the change.", 1)],
        responses=ChangeDocument,
        examples=[response_example(CHANGE | {"before": {}, "after": {"status": "unlocked"}})],
    )
    def get(self, request: Request, name: str, revision: str) -> HttpResponseBase:
        number = parse_number("revision", revision)

        def missing() -> ChangeNotFoundError:
            _check_existed(name)
            return ChangeNotFoundError(described=f"of global tag {quoted(name)} with revision {number}")

        return stream_change(GlobalTagChange.objects.filter(global_tag=name, revision=number), missing)


def notice_of(changes: Sequence[GlobalTagChange], position: int) -> bytes:
    """The JSON text that subscriptions get: changes, and the cursor after them for `GET changes`."""
    return dump({"changes": [document_of(ChangeItem, change) for change in changes], "cursor": str(position)})


def _check_existed(name: str) -> None:
    """Raise `GlobalTagNotFoundError` unless a tag of this name exists or has a change log."""
    existed = GlobalTagChange.objects.filter(global_tag=name).exists() or GlobalTag.objects.filter(name=name).exists()
    if not existed:
        raise GlobalTagNotFoundError(name)


def stream_change(rows: QuerySet[GlobalTagChange], missing: Callable[[], NotFoundError]) -> HttpResponseBase:
    """A JSON object: the change in `rows`, with what it removed (`before`) and what it added (`after`).

    Raises the error that `missing` returns if `rows` is empty, and those of `read_change`. `rows` should match only one change.
    """
    return respond(_change(rows, missing))


def _change(rows: QuerySet[GlobalTagChange], missing: Callable[[], NotFoundError]) -> Generator[bytes]:
    found = rows.first()
    if found is None:
        raise missing()
    before, after, groups = read_change(found)
    yield dump(document_of(ChangeItem, found))[:-1]
    group = next(groups, None)
    for side, attributes in (("before", before), ("after", after)):
        if group is None or group[0] != side:
            yield b',"%s":%s' % (side.encode(), dump(attributes))
            continue
        separator = b"," if attributes else b""
        yield b',"%s":%s%s"payload_iovs":' % (side.encode(), dump(attributes)[:-1], separator)
        yield from array((dump(row),) for row in group[1])
        yield b"}"
        group = next(groups, None)
    yield b"}"
