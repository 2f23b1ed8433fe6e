"""Inserting: one or many payloads with their intervals, in one request."""

from functools import partial
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Document, Shape, one_of
from cdb_rest.api.base.descriptions import request_example, response_example
from cdb_rest.api.base.views import StrictView, read_rows
from cdb_rest.api.base.writes import is_dry_run, read_origin, respond_to_write
from cdb_rest.api.examples import INSERTION
from cdb_rest.api.payload_iovs import PayloadInput, PayloadIOVInput
from cdb_rest.api.plans import InsertionResult, insertion_document, refusal_document
from cdb_rest.parsing.fields import MomentField, TextField, UntilField, read_body
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import InvalidInputError, OverlapError, TagFrozenError
from cdb_rest.rules.moment import END_OF_TIME
from cdb_rest.rules.names import COMMENT_LENGTH, LIST_NAME_LENGTH, NAME_LENGTH, TEXT_LENGTH
from cdb_rest.writes import bulk, insertion


class BulkResult(Shape):
    """The response to a bulk insert. `unchanged` is the number of rows whose payload was valid already."""

    detail = serializers.CharField()
    count = serializers.IntegerField()
    unchanged = serializers.IntegerField()


class BulkPayloadIOVInput(PayloadIOVInput):
    """A payload IOV of a bulk request, with the name of its payload list."""

    checksum = TextField(max_length=TEXT_LENGTH, allow_blank=True, default="")
    payload_list = TextField(max_length=LIST_NAME_LENGTH)


# `until` has no default, because existing clients have different defaults, and "open" would remove later IOVs.
NO_END = (
    'One of three is required: a moment [major, minor], where the validity ends; "next", at the next start in the payload '
    'list; or "open", never: then all later IOVs are removed from the list.'
)


class InsertInput(PayloadInput):
    """A payload to insert into a global tag, by the names of tag and payload type."""

    global_tag = TextField(max_length=NAME_LENGTH)
    payload_type = TextField(max_length=NAME_LENGTH)
    since = MomentField()
    until = UntilField(error_messages={"required": NO_END, "null": NO_END})
    dry_run = serializers.BooleanField(required=False)
    comment = TextField(max_length=COMMENT_LENGTH, required=False, allow_blank=True)

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Replace `since` and `until` by the columns of the interval and `since_only`; remove `comment` and `dry_run`.

        `since_only` is true if `until` is "next"; the columns then have an open end.
        """
        since, until = attributes.pop("since"), attributes.pop("until")
        for name in ("comment", "dry_run"):
            attributes.pop(name, None)
        end = END_OF_TIME if isinstance(until, str) else until
        return attributes | {
            "major_iov": since.major,
            "minor_iov": since.minor,
            "major_iov_end": end.major,
            "minor_iov_end": end.minor,
            "since_only": until == "next",
        }


def read_insertion(request: Request) -> list[dict[str, Any]]:
    """The rows to insert, in the form of `insert_payloads`. The body is one object or an array of them.

    Raises `TooManyRowsError` or `InvalidInputError`.
    """
    # It may also be an array, which the type stubs leave out.
    data: Any = request.data
    if isinstance(data, list):
        return read_rows(data, InsertInput, strict=True)
    return [read_body(request, InsertInput)]


def read_bulk(request: Request) -> list[dict[str, Any]]:
    """The rows of a bulk request, in the form of `insert_payload_iovs`.

    Raises `TooManyRowsError`, or `InvalidInputError` if the body is not an array or has invalid rows. The `rows` of the
    error describes the first invalid ones.
    """
    data: Any = request.data
    if not isinstance(data, list):
        raise InvalidInputError("The body must be a JSON array of payload IOVs.")
    return read_rows(data, BulkPayloadIOVInput, strict=False)


PAYLOAD = {
    "global_tag": "tiny",
    "payload_type": "Pixel_Alignment",
    "payload_url": "pixel/run5.root",
    "checksum": "9e107d9d",
    "since": [5, 0],
    "until": [6, 0],
    "dry_run": True,
}
BULK_ROW = {
    "payload_list": "Pixel_Alignment_1",
    "payload_url": "pixel/run5.root",
    "checksum": "9e107d9d",
    "size": 1024,
    "major_iov": 5,
    "minor_iov": 0,
    "major_iov_end": 6,
    "minor_iov_end": 0,
}


class PayloadIOVInsertView(StrictView):
    """Insert one payload or an array of them, all or none. With `dry_run`, the plan is returned and nothing changes.

    If the same payload is valid in the whole interval already, nothing changes, whatever the status of the tag is: then
    `unchanged` is true, and `added` is the existing IOV.

    A payload becomes valid inside its interval; outside of it nothing changes. `until` is the end: a moment, `"open"`,
    `[7, "end"]` for the end of major number 7, `"open"`,
    or `"next"` for the start of the next IOV. The payload type must exist. If the tag has no payload list of that type,
    one is created. The response lists for each payload the other IOVs that are cut.

    The response is 409 if a tag is frozen, or if existing intervals of a tag that is not unlocked would change. A dry
    run gets 200 instead, with the error in `refused`.
    """

    takes_rows = True

    @extend_schema(
        summary="Insert payloads into global tags",
        request=one_of(InsertInput(), InsertInput(many=True)),
        responses=InsertionResult,
        examples=[request_example(PAYLOAD), response_example(INSERTION)],
    )
    def post(self, request: Request) -> HttpResponse:
        rows = read_insertion(request)
        if is_dry_run(request):
            return Response(_dry_run(rows, read_origin(request)))
        service = partial(insertion.insert_payloads, rows=rows)
        return respond_to_write(request, service, partial(insertion_document, dry_run=False))


def _dry_run(rows: list[dict[str, Any]], origin: Origin) -> dict[str, Any]:
    try:
        return insertion_document(insertion.insert_payloads(rows=rows, dry_run=True, origin=origin), dry_run=True)
    except (OverlapError, TagFrozenError) as error:
        return refusal_document(error)


class PayloadIOVBulkView(APIView):
    """Insert all rows or none. The order of the rows has no meaning.

    An IOV with an end is valid in its interval. An IOV without an end is valid until the start of the next IOV in the
    request or in its list. A row whose payload is valid in its whole interval already changes nothing.

    The response is 409 if a row that changes something has the start of a stored IOV of its list, if a tag is frozen, or if
    existing intervals of a tag that is not unlocked would change. It is 400 if two rows of a list have the same start, or if one
    starts before the end of another one.
    """

    takes_rows = True

    @extend_schema(
        summary="Insert IOVs into payload lists",
        request=BulkPayloadIOVInput(many=True),
        responses=BulkResult,
        examples=[request_example(BULK_ROW)],
    )
    def post(self, request: Request) -> HttpResponse:
        rows = read_bulk(request)

        def document(found: bulk.BulkResult) -> Document:
            detail = f"Payload IOVs inserted: {found.inserted}; unchanged: {found.unchanged}."
            return {"detail": detail, "count": len(rows), "unchanged": found.unchanged}

        return respond_to_write(request, partial(bulk.insert_payload_iovs, rows=rows), document)
