"""Views of payload IOVs."""

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api import streams
from cdb_rest.api.browsers import PAYLOAD_IOVS
from cdb_rest.api.documents import PayloadIOVDocument, Statement, document, document_of
from cdb_rest.api.fields import parse_moment, parse_number, read_body
from cdb_rest.api.inputs import PayloadIOVAttachInput, PayloadIOVInput
from cdb_rest.api.paging import wants_page
from cdb_rest.api.writes import read_origin
from cdb_rest.domain.errors import PayloadIOVNotFoundError
from cdb_rest.domain.moment import END_OF_TIME
from cdb_rest.models import PayloadIOV
from cdb_rest.services import payload_iovs

VALUES = {
    "payload_url": "gains/run5.root",
    "checksum": "9e107d9d372bb682",
    "size": 1024,
    "major_iov": 5,
    "minor_iov": 0,
}
EXAMPLE = OpenApiExample("An IOV with an open end", VALUES, request_only=True)


class PayloadIOVListView(APIView):
    """All payload IOVs, or a page of them."""

    @extend_schema(parameters=PAYLOAD_IOVS.parameters(), responses=PAYLOAD_IOVS.list_or_page(PayloadIOVDocument))
    def get(self, request: Request) -> HttpResponseBase:
        if wants_page(request.query_params):
            return Response(PAYLOAD_IOVS.page(request.query_params))
        return streams.payload_iovs(PayloadIOV.objects.all())

    @extend_schema(request=PayloadIOVInput, responses=PayloadIOVDocument, examples=[EXAMPLE])
    def post(self, request: Request) -> Response:
        """Create a detached payload IOV; an end that is left out is open."""
        created = payload_iovs.create_payload_iov(**read_body(request, PayloadIOVInput))
        return Response(document_of(PayloadIOVDocument, created))


class PayloadIOVByIdView(APIView):
    """One payload IOV, by id."""

    @extend_schema(responses=PayloadIOVDocument)
    def get(self, request: Request, iov_id: str) -> Response:
        number = parse_number("id", iov_id)
        found = document(PayloadIOVDocument, PayloadIOV.objects.filter(id=number))
        if found is None:
            raise PayloadIOVNotFoundError(number)
        return Response(found)


class PayloadIOVAttachView(APIView):
    """Attaching a payload IOV to a payload list."""

    @extend_schema(request=PayloadIOVAttachInput, responses=PayloadIOVDocument)
    def put(self, request: Request) -> Response:
        body = read_body(request, PayloadIOVAttachInput)
        iov = payload_iovs.attach_payload_iov(
            payload_list=body["payload_list"], iov_id=body["piov_id"], origin=read_origin(request)
        )
        return Response(document_of(PayloadIOVDocument, iov))


class PayloadIOVDeleteView(APIView):
    """Deleting the payload IOV of a global tag and payload type that has exactly this start and end (open if left out)."""

    @extend_schema(request=None, responses={200: Statement})
    def delete(
        self,
        request: Request,
        global_tag: str,
        payload_type: str,
        major: str,
        minor: str,
        major_end: str | None = None,
        minor_end: str | None = None,
    ) -> Response:
        start = parse_moment(("major", "minor"), (major, minor))
        end = END_OF_TIME if major_end is None else parse_moment(("major_end", "minor_end"), (major_end, minor_end))
        payload_iovs.delete_payload_iov(
            global_tag=global_tag, payload_type=payload_type, start=start, end=end, origin=read_origin(request)
        )
        return Response({"detail": f"Payload IOV from {start} to {end} of {payload_type} in {global_tag} deleted."})
