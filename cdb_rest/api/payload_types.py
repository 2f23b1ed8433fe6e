"""Payload types: the kinds of payloads, such as the alignment of a detector."""

from functools import partial

from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Shape
from cdb_rest.api.base.descriptions import in_path, request_example, response_example
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import OptionalBodyView, Statement, respond_hot
from cdb_rest.api.base.writes import respond_to_write
from cdb_rest.api.examples import PAYLOAD_TYPE, page_of
from cdb_rest.models import PayloadType
from cdb_rest.parsing.fields import Input, NameField, TextField, read_body
from cdb_rest.routes import Hot
from cdb_rest.rules.names import TEXT_LENGTH
from cdb_rest.writes import payload_types


class NamedDocument(Shape):
    """A status or a payload type."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    created = serializers.DateTimeField()


class NamedInput(Input):
    """A new status or payload type."""

    name = NameField()
    description = TextField(max_length=TEXT_LENGTH, required=False, allow_blank=True)


PAYLOAD_TYPES = Browser(
    shape=NamedDocument,
    rows=PayloadType.objects.all,
    search=("name", "description"),
    sort={"name": "name", "id": "id", "created": "created"},
)


class PayloadTypeListView(APIView):
    """All payload types, ordered by id; with `page`, one page of them."""

    @extend_schema(
        summary="List payload types",
        parameters=PAYLOAD_TYPES.parameters(),
        responses=PAYLOAD_TYPES.list_or_page(NamedDocument),
        examples=[response_example([PAYLOAD_TYPE]), response_example(page_of(PAYLOAD_TYPE, 10), "With page=1")],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if PAYLOAD_TYPES.wants_page(request.query_params):
            return Response(PAYLOAD_TYPES.page(request.query_params))
        return respond_hot(request, Hot.PAYLOAD_TYPES)

    @extend_schema(
        summary="Create a payload type",
        request=NamedInput,
        responses=NamedDocument,
        examples=[request_example({"name": "Gain", "description": "Gain of each channel"})],
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a payload type. It must exist before the first payload of that type is inserted."""
        service = partial(payload_types.create_payload_type, **read_body(request, NamedInput))
        return respond_to_write(request, service, NamedDocument)


class PayloadTypeDeleteView(OptionalBodyView):
    """Delete an unused type. The response is 409 if a payload list has that type."""

    @extend_schema(
        summary="Delete a payload type",
        parameters=[in_path("name", "Name of the payload type.", "Gain")],
        request=None,
        responses={200: Statement},
    )
    def delete(self, request: Request, name: str) -> HttpResponse:
        service = partial(payload_types.delete_payload_type, name=name)
        return respond_to_write(request, service, lambda _: {"detail": f"Payload type {name} deleted."})
