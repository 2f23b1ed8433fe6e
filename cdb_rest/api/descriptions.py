"""Descriptions and limits: the texts of global tags and payload types, and what limits the writes to a global tag."""

from functools import partial
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.api.base.conversion import Document, Shape, document_of
from cdb_rest.api.base.descriptions import in_path, request_example
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.writes import respond_to_write
from cdb_rest.api.nested import LimitsShape
from cdb_rest.models import GlobalTag, PayloadType, PayloadTypeChange
from cdb_rest.parsing.fields import Input, MomentField, NumberField, TextField, read_body
from cdb_rest.rules.errors import GlobalTagNotFoundError, InvalidInputError, PayloadTypeNotFoundError, existing
from cdb_rest.rules.names import NAME_LENGTH, TEXT_LENGTH
from cdb_rest.writes import global_tags, limits, payload_types


class GlobalTagDescriptionInput(Input):
    """The texts of a global tag. One that is left out stays as it is."""

    author = TextField(max_length=NAME_LENGTH, required=False, allow_blank=True)
    description = TextField(max_length=TEXT_LENGTH, required=False, allow_blank=True)


class GlobalTagDescription(Shape):
    """The texts of a global tag, and its revision."""

    global_tag = serializers.CharField(source="name")
    revision = serializers.IntegerField()
    author = serializers.CharField()
    description = serializers.CharField()


class LimitsInput(Input):
    """The limits of a global tag. A limit that is left out stays as it is; one that is null is removed."""

    closed_until = MomentField(required=False, allow_null=True)
    largest_major = NumberField(required=False, allow_null=True)
    accepts_requests = serializers.BooleanField(required=False)


class LimitsDocument(LimitsShape):
    """The limits of a global tag; null for none."""

    global_tag = serializers.CharField()
    revision = serializers.IntegerField()
    accepts_requests = serializers.BooleanField()


class PayloadTypeDescriptionInput(Input):
    """The description of a payload type."""

    description = TextField(max_length=TEXT_LENGTH, allow_blank=True)


class PayloadTypeDescription(Shape):
    """The description of a payload type."""

    payload_type = serializers.CharField(source="name")
    description = serializers.CharField()


class PayloadTypeChangeItem(Shape):
    """A change of a payload type, with its description before and after it."""

    payload_type = serializers.CharField()
    time = serializers.DateTimeField(source="created")
    actor = serializers.CharField()
    action = serializers.CharField()
    comment = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()


CHANGES = Browser(
    shape=PayloadTypeChangeItem,
    rows=PayloadTypeChange.objects.all,
    search=("comment", "actor", "before", "after"),
    sort={"id": "id"},
    filters={"action": "action", "actor": "actor"},
    newest_first=True,
)
TAG, TYPE = (
    in_path("name", "Name of the global tag.", "tiny"),
    in_path("name", "Name of the payload type.", "Pixel_Alignment"),
)


class GlobalTagDescriptionView(StrictView):
    """The author and the description of a global tag."""

    @extend_schema(summary="Get the description of a global tag", parameters=[TAG], responses=GlobalTagDescription)
    def get(self, request: Request, name: str) -> Response:
        tag = existing(GlobalTag.objects.filter(name=name).first(), GlobalTagNotFoundError(name))
        return Response(document_of(GlobalTagDescription, tag))

    @extend_schema(
        summary="Describe a global tag",
        parameters=[TAG],
        request=GlobalTagDescriptionInput,
        responses=GlobalTagDescription,
        examples=[request_example({"description": "First pass of the autumn data"})],
    )
    def put(self, request: Request, name: str) -> HttpResponse:
        """Set the author, the description or both. The response is 409 if the tag is frozen."""
        given = read_body(request, GlobalTagDescriptionInput)
        if not given:
            raise InvalidInputError("Give author, description or both.")
        service = partial(global_tags.describe_global_tag, name=name, **given)
        return respond_to_write(request, service, GlobalTagDescription)


class GlobalTagLimitsView(StrictView):
    """The limits of a global tag for writes.

    What is valid before `closed_until`, a moment [major, minor], cannot be changed. No IOV may start after the major number
    `largest_major`, nor end later, unless it is open: this catches mistyped numbers. With `accepts_requests`, a request that is
    accepted may change the tag while it is locked.
    """

    @extend_schema(summary="Get the limits of a global tag", parameters=[TAG], responses=LimitsDocument)
    def get(self, request: Request, name: str) -> Response:
        tag = existing(GlobalTag.objects.filter(name=name).first(), GlobalTagNotFoundError(name))
        return Response(_limits_document(tag))

    @extend_schema(
        summary="Set the limits of a global tag",
        parameters=[TAG],
        request=LimitsInput,
        responses=LimitsDocument,
        examples=[request_example({"closed_until": [5, 0], "largest_major": 999_999})],
    )
    def put(self, request: Request, name: str) -> HttpResponse:
        """Set some of the limits.

        To lower or remove `closed_until` needs the role administrator, and the tag must be unlocked.
        """
        given = read_body(request, LimitsInput)
        body: Any = request.data
        # The serializer leaves null out, because for optional members it usually means the same as no member.
        given |= {key: None for key in ("closed_until", "largest_major") if key in body and body[key] is None}
        if not given:
            raise InvalidInputError("Give closed_until, largest_major or accepts_requests.")

        return respond_to_write(request, partial(limits.set_limits, name=name, **given), _limits_document)


class PayloadTypeDescriptionView(StrictView):
    """The description of a payload type."""

    @extend_schema(summary="Get the description of a payload type", parameters=[TYPE], responses=PayloadTypeDescription)
    def get(self, request: Request, name: str) -> Response:
        found = existing(PayloadType.objects.filter(name=name).first(), PayloadTypeNotFoundError(name))
        return Response(document_of(PayloadTypeDescription, found))

    @extend_schema(
        summary="Describe a payload type",
        parameters=[TYPE],
        request=PayloadTypeDescriptionInput,
        responses=PayloadTypeDescription,
        examples=[request_example({"description": "Gain of each channel"})],
    )
    def put(self, request: Request, name: str) -> HttpResponse:
        given = read_body(request, PayloadTypeDescriptionInput)
        service = partial(payload_types.describe_payload_type, name=name, **given)
        return respond_to_write(request, service, PayloadTypeDescription)


class PayloadTypeChangeListView(StrictView):
    """The changes of a payload type, newest first, page by page; also of one that was deleted."""

    query = CHANGES.parameters()

    @extend_schema(summary="List the changes of a payload type", parameters=[TYPE], responses=CHANGES.page_shape())
    def get(self, request: Request, name: str) -> Response:
        changes = PayloadTypeChange.objects.filter(payload_type=name)
        if not changes.exists() and not PayloadType.objects.filter(name=name).exists():
            raise PayloadTypeNotFoundError(name)
        return Response(CHANGES.page(request.query_params, changes))


def _limits_document(tag: GlobalTag) -> Document:
    return {"global_tag": tag.name, "revision": tag.revision} | limits.limits_document(tag)
