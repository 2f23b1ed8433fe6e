"""Payload lists: the IOVs of one payload type, for one global tag."""

from functools import partial

from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Document, document, document_of
from cdb_rest.api.base.descriptions import in_path, request_example, response_example
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import OptionalBodyView, Statement, StrictView
from cdb_rest.api.base.writes import respond_to_write
from cdb_rest.api.examples import COUNTED_PAYLOAD_LIST, NESTED_PAYLOAD_LIST, page_of
from cdb_rest.api.nested import NestedPayloadList, PayloadListDocument, stream_payload_list, stream_payload_lists
from cdb_rest.models import PayloadList
from cdb_rest.parsing.fields import Input, TextField, read_body
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.errors import PayloadListNotFoundError
from cdb_rest.rules.names import LIST_NAME_LENGTH, NAME_LENGTH
from cdb_rest.writes import payload_lists


class PayloadListItem(PayloadListDocument):
    """A payload list on a page, with its number of IOVs."""

    iov_count = serializers.IntegerField()


class PayloadListInput(Input):
    """A new payload list, given by the name of its payload type."""

    payload_type = TextField(max_length=NAME_LENGTH)


class PayloadListAttachInput(Input):
    """The names of a payload list and of the global tag to attach it to."""

    global_tag = TextField(max_length=NAME_LENGTH)
    payload_list = TextField(max_length=LIST_NAME_LENGTH)


PAYLOAD_LISTS = Browser(
    shape=PayloadListItem,
    rows=PayloadList.objects.all,
    search=("name", "description", "global_tag__name", "payload_type__name"),
    sort={
        "name": "name",
        "id": "id",
        "global_tag": "global_tag__name",
        "payload_type": "payload_type__name",
        "iov_count": "iov_count",
        "created": "created",
    },
    filters={"global_tag": "global_tag__name", "payload_type": "payload_type__name"},
)


class PayloadListListView(APIView):
    """All payload lists, ordered by id, with their IOVs; with `page`, one page of them, with counts instead of IOVs."""

    known = {"GET": ("payload_type",)}

    @extend_schema(
        summary="List payload lists",
        parameters=PAYLOAD_LISTS.parameters(),
        responses=PAYLOAD_LISTS.list_or_page(NestedPayloadList),
        examples=[
            response_example([NESTED_PAYLOAD_LIST]),
            response_example(page_of(COUNTED_PAYLOAD_LIST, 10), "With page=1"),
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if PAYLOAD_LISTS.wants_page(request.query_params):
            return Response(PAYLOAD_LISTS.page(request.query_params))
        return stream_payload_lists(PayloadList.objects.all())

    @extend_schema(
        summary="Create a payload list",
        request=PayloadListInput,
        responses=PayloadListDocument,
        examples=[request_example({"payload_type": "Pixel_Alignment"})],
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a payload list, which is empty and in no global tag.

        Its name consists of its payload type and its id: `Pixel_Alignment_11`.
        """
        service = partial(payload_lists.create_payload_list, **read_body(request, PayloadListInput))
        return respond_to_write(request, service, PayloadListDocument)


class PayloadListByIdView(APIView):
    """One payload list with its IOVs, ordered by start."""

    @extend_schema(
        summary="Get a payload list by id",
        parameters=[in_path("list_id", "Id of the payload list.", 1)],
        responses=NestedPayloadList,
        examples=[response_example(NESTED_PAYLOAD_LIST)],
    )
    def get(self, request: Request, list_id: str) -> HttpResponseBase:
        number = parse_number("id", list_id)
        return stream_payload_list(PayloadList.objects.filter(id=number), PayloadListNotFoundError(number))


class PayloadListByNameView(StrictView):
    """One payload list with its number of IOVs."""

    @extend_schema(
        summary="Get a payload list by name",
        parameters=[in_path("name", "Name of the payload list.", "Pixel_Alignment_1")],
        responses=PayloadListItem,
        examples=[response_example(COUNTED_PAYLOAD_LIST)],
    )
    def get(self, request: Request, name: str) -> Response:
        item = document(PayloadListItem, PayloadList.objects.filter(name=name))
        if item is None:
            raise PayloadListNotFoundError(name)
        return Response(item)


class PayloadListAttachView(APIView):
    """Attach a payload list to a global tag. The list of the same payload type that the tag had before is detached.

    If other clients have added IOVs to the list while it was in no tag, `added_by_others` has their numbers by client.

    If the list is in another tag, it is detached from there. If it is in this tag already, nothing changes. The
    response is 409 if the tag is frozen, or if a tag that is not unlocked would lose a list.
    """

    @extend_schema(
        summary="Attach a payload list to a global tag",
        request=PayloadListAttachInput,
        responses=PayloadListDocument,
        examples=[request_example({"global_tag": "tiny", "payload_list": "Pixel_Alignment_1"})],
    )
    def put(self, request: Request) -> HttpResponse:
        service = partial(payload_lists.attach_payload_list, **read_body(request, PayloadListAttachInput))

        def document(found: tuple[PayloadList, int]) -> Document:
            attached, others = found
            return document_of(PayloadListDocument, attached) | ({"added_by_others": others} if others else {})

        return respond_to_write(request, service, document)


class PayloadListDeleteView(OptionalBodyView):
    """Delete an empty list. The response is 409 if the list has IOVs, or is in a global tag that is not unlocked."""

    @extend_schema(
        summary="Delete a payload list",
        parameters=[
            in_path("name", "Name of the payload list, as the response to its creation has it.", "Pixel_Alignment_11")
        ],
        request=None,
        responses={200: Statement},
    )
    def delete(self, request: Request, name: str) -> HttpResponse:
        service = partial(payload_lists.delete_payload_list, name=name)
        return respond_to_write(request, service, lambda _: {"detail": f"Payload list {name} deleted."})
