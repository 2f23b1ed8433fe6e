"""Views that insert payloads with their intervals, many in one request."""

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.documents import BulkResult, one_of
from cdb_rest.api.inputs import BulkPayloadIOVInput, InsertInput, read_bulk, read_insertion
from cdb_rest.api.plans import InsertionResult, insertion_document, refusal_document
from cdb_rest.api.views.payload_iovs import VALUES
from cdb_rest.api.writes import WRITE_HEADERS, answer_write, read_origin
from cdb_rest.domain.errors import OverlapError, TagFrozenError
from cdb_rest.services import bulk, insertion

INSERT_EXAMPLE = OpenApiExample(
    "A payload from a moment to another one",
    {
        "global_tag": "tiny", "payload_type": "Pixel_Alignment", "payload_url": "pixel/run5.root", "checksum": "9e107d9d",
        "since": [5, 0], "until": [6, 0], "dry_run": True,
    },
    request_only=True,
)  # fmt: skip
BULK_EXAMPLE = OpenApiExample("IOVs with open ends", VALUES | {"payload_list": "Gain_1"}, request_only=True)


class PayloadIOVInsertView(APIView):
    """Inserting payloads into global tags by the names of tag and payload type, all or none, or trying out what it does."""

    takes_rows = True

    @extend_schema(
        parameters=[
            *WRITE_HEADERS,
            OpenApiParameter(
                "dry_run", str, enum=["0", "1"], description="1: say what would happen, and change nothing."
            ),
        ],
        request=one_of(InsertInput(), InsertInput(many=True)),
        responses=InsertionResult,
        examples=[INSERT_EXAMPLE],
    )
    def post(self, request: Request) -> HttpResponse:
        rows, dry_run = read_insertion(request)
        origin = read_origin(request)
        if dry_run:
            return Response(_try_out(rows))

        def insert() -> dict:
            return insertion_document(insertion.insert_payloads(rows=rows, origin=origin), dry_run=False)

        return answer_write(request, insert)


def _try_out(rows: list[dict]) -> dict:
    try:
        return insertion_document(insertion.insert_payloads(rows=rows, dry_run=True), dry_run=True)
    except (OverlapError, TagFrozenError) as error:
        return refusal_document(error)


class PayloadIOVBulkView(APIView):
    """Inserting many payload IOVs into payload lists, all or none."""

    takes_rows = True

    @extend_schema(
        parameters=WRITE_HEADERS, request=BulkPayloadIOVInput(many=True), responses=BulkResult, examples=[BULK_EXAMPLE]
    )
    def post(self, request: Request) -> HttpResponse:
        rows, origin = read_bulk(request), read_origin(request)

        def insert() -> dict:
            count = bulk.insert_payload_iovs(rows=rows, origin=origin)
            return {"detail": f"Payload IOVs inserted: {count}.", "count": count}

        return answer_write(request, insert)
