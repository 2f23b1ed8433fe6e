"""Views of payload types."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.browsers import PAYLOAD_TYPES
from cdb_rest.api.documents import NamedDocument, Statement, document_of, documents
from cdb_rest.api.fields import read_body
from cdb_rest.api.inputs import NamedInput
from cdb_rest.api.paging import wants_page
from cdb_rest.models import PayloadType
from cdb_rest.services import payload_types


class PayloadTypeListView(APIView):
    """All payload types, or a page of them."""

    @extend_schema(parameters=PAYLOAD_TYPES.parameters(), responses=PAYLOAD_TYPES.list_or_page(NamedDocument))
    def get(self, request: Request) -> Response:
        if wants_page(request.query_params):
            return Response(PAYLOAD_TYPES.page(request.query_params))
        return Response(documents(NamedDocument, PayloadType.objects.order_by("id")))

    @extend_schema(request=NamedInput, responses=NamedDocument)
    def post(self, request: Request) -> Response:
        """Create a payload type."""
        created = payload_types.create_payload_type(**read_body(request, NamedInput))
        return Response(document_of(NamedDocument, created))


class PayloadTypeDeleteView(APIView):
    """Deleting a payload type that no payload list has."""

    @extend_schema(request=None, responses={200: Statement})
    def delete(self, request: Request, name: str) -> Response:
        payload_types.delete_payload_type(name=name)
        return Response({"detail": f"Payload type {name} deleted."})
