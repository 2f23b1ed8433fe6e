"""Limits of a global tag: until when it is closed, the largest major number, and whether requests may change it while locked."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.api.base.conversion import Shape
from cdb_rest.api.base.descriptions import in_path, request_example
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.writes import respond_to_write
from cdb_rest.models import GlobalTag
from cdb_rest.parsing.fields import Input, MomentField, NumberField, read_body
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError, InvalidInputError, existing
from cdb_rest.writes import limits


class LimitsInput(Input):
    """The limits of a global tag. A limit that is left out stays as it is; one that is null is removed."""

    closed_until = MomentField(required=False, allow_null=True)
    largest_major = NumberField(required=False, allow_null=True)
    accepts_requests = serializers.BooleanField(required=False)


class LimitsDocument(Shape):
    """The limits of a global tag; null for none."""

    global_tag = serializers.CharField()
    revision = serializers.IntegerField()
    closed_until = serializers.ListField(child=serializers.IntegerField(), allow_null=True)
    largest_major = serializers.IntegerField(allow_null=True)
    accepts_requests = serializers.BooleanField()


NAME = in_path("name", "Name of the global tag.", "tiny")


class GlobalTagLimitsView(StrictView):
    """The limits of a global tag for writes.

    What is valid before `closed_until`, a moment [major, minor], cannot be changed. No IOV may start after the major number
    `largest_major`, nor end later, unless it is open: this catches mistyped numbers. With `accepts_requests`, a request that is
    accepted may change the tag while it is locked.
    """

    @extend_schema(summary="Get the limits of a global tag", parameters=[NAME], responses=LimitsDocument)
    def get(self, request: Request, name: str) -> Response:
        return Response(_document(_find(name)))

    @extend_schema(
        summary="Set the limits of a global tag",
        parameters=[NAME],
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

        def change(origin: Origin) -> GlobalTag:
            tag = _find(name)
            now = {"closed_until": tag.closed, "largest_major": tag.largest_major}
            return limits.set_limits(name=name, **now | given, origin=origin)

        return respond_to_write(request, change, _document)


def _find(name: str) -> GlobalTag:
    return existing(GlobalTag.objects.filter(name=name).first(), GlobalTagNotFoundError(name))


def _document(tag: GlobalTag) -> dict[str, Any]:
    return {"global_tag": tag.name, "revision": tag.revision} | limits.limits_document(tag)
