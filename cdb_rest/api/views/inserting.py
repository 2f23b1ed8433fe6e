"""Inserting: one or many payloads with their intervals, in one request."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.descriptions import request_example, response_example
from cdb_rest.api.documents import BulkResult, one_of
from cdb_rest.api.inputs import BulkPayloadIOVInput, InsertInput, StrictView, read_bulk, read_insertion
from cdb_rest.api.plans import InsertionResult, insertion_document, refusal_document
from cdb_rest.api.writes import WRITE_HEADERS, read_origin, respond_to_write
from cdb_rest.rules.errors import OverlapError, TagFrozenError
from cdb_rest.rules.origin import Origin
from cdb_rest.writes import bulk, insertion

PAYLOAD = {
    "global_tag": "tiny",
    "payload_type": "Pixel_Alignment",
    "payload_url": "pixel/run5.root",
    "checksum": "9e107d9d",
    "since": [5, 0],
    "until": [6, 0],
    "dry_run": True,
}
SPLIT = {
    "id": 10,
    "payload_url": "Pixel_Alignment/tiny/000000_dcd93f5b.root",
    "before": {"since": [1, 0], "until": [14, 2459]},
    "after": [{"since": [1, 0], "until": [5, 0]}, {"since": [6, 0], "until": [14, 2459]}],
}
PLAN = {
    "detail": "Dry run, nothing was changed: payload IOVs inserted: 1; existing IOVs shortened, moved or split: 1; "
    "removed from their list: 0.",
    "dry_run": True,
    "refused": None,
    "revisions": {},
    "rows": [
        {
            "row": 0,
            "global_tag": "tiny",
            "payload_type": "Pixel_Alignment",
            "payload_list": "Pixel_Alignment_1",
            "list_created": False,
            "added": {"id": None, "payload_url": "pixel/run5.root", "since": [5, 0], "until": [6, 0]},
            "trimmed": [],
            "moved": [],
            "split": [SPLIT],
            "detached": [],
        }
    ],
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

    A payload becomes valid inside its interval; outside of it nothing changes. `until` is the end: a moment, `"open"`,
    or `"next"` for the start of the next IOV. The payload type must exist. If the tag has no payload list of that type,
    one is created. The response lists for each payload the other IOVs that are cut.

    The response is 409 if a tag is frozen, or if existing intervals of a tag that is not unlocked would change. A dry
    run gets 200 instead, with the error in `refused`.
    """

    takes_rows = True
    query = (OpenApiParameter("dry_run", str, enum=["0", "1"], description="1: return the plan and change nothing."),)

    @extend_schema(
        summary="Insert payloads into global tags",
        parameters=WRITE_HEADERS,
        request=one_of(InsertInput(), InsertInput(many=True)),
        responses=InsertionResult,
        examples=[request_example(PAYLOAD), response_example(PLAN)],
    )
    def post(self, request: Request) -> HttpResponse:
        rows, dry_run = read_insertion(request)
        origin = read_origin(request)
        if dry_run:
            return Response(_dry_run(rows, origin))

        def insert() -> dict[str, Any]:
            return insertion_document(insertion.insert_payloads(rows=rows, origin=origin), dry_run=False)

        return respond_to_write(request, insert)


def _dry_run(rows: list[dict[str, Any]], origin: Origin) -> dict[str, Any]:
    try:
        return insertion_document(insertion.insert_payloads(rows=rows, dry_run=True, origin=origin), dry_run=True)
    except (OverlapError, TagFrozenError) as error:
        return refusal_document(error)


class PayloadIOVBulkView(APIView):
    """Insert all rows or none.

    An IOV with an end is valid in its interval. An IOV without an end is valid until the start of the next IOV in its
    list.

    The response is 409 if an IOV has the start of a stored IOV of its list, if a tag is frozen, or if existing
    intervals of a tag that is not unlocked would change. It is 400 if two rows have the same list and start.
    """

    takes_rows = True

    @extend_schema(
        summary="Insert IOVs into payload lists",
        parameters=WRITE_HEADERS,
        request=BulkPayloadIOVInput(many=True),
        responses=BulkResult,
        examples=[request_example(BULK_ROW)],
    )
    def post(self, request: Request) -> HttpResponse:
        rows, origin = read_bulk(request), read_origin(request)

        def insert() -> dict[str, Any]:
            count = bulk.insert_payload_iovs(rows=rows, origin=origin)
            return {"detail": f"Payload IOVs inserted: {count}.", "count": count}

        return respond_to_write(request, insert)
