"""Views of payload lists."""

from django.http import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api import streams
from cdb_rest.api.browsers import PAYLOAD_LISTS
from cdb_rest.api.documents import (
    NestedPayloadList,
    PayloadListDocument,
    PayloadListItem,
    Statement,
    document,
    document_of,
)
from cdb_rest.api.fields import parse_number, read_body
from cdb_rest.api.inputs import PayloadListAttachInput, PayloadListInput
from cdb_rest.api.paging import wants_page
from cdb_rest.api.writes import read_origin
from cdb_rest.domain.errors import PayloadListNotFoundError
from cdb_rest.models import PayloadList
from cdb_rest.services import payload_lists


class PayloadListListView(APIView):
    """All payload lists with their IOVs, or a page of them with their counts."""

    @extend_schema(parameters=PAYLOAD_LISTS.parameters(), responses=PAYLOAD_LISTS.list_or_page(NestedPayloadList))
    def get(self, request: Request) -> HttpResponseBase:
        if wants_page(request.query_params):
            return Response(PAYLOAD_LISTS.page(request.query_params))
        return streams.payload_lists(PayloadList.objects.all())

    @extend_schema(request=PayloadListInput, responses=PayloadListDocument)
    def post(self, request: Request) -> Response:
        """Create an empty, detached payload list, named after its type and its id."""
        created = payload_lists.create_payload_list(**read_body(request, PayloadListInput))
        return Response(document_of(PayloadListDocument, created))


class PayloadListByIdView(APIView):
    """One payload list with its IOVs, by id."""

    @extend_schema(responses=NestedPayloadList)
    def get(self, request: Request, list_id: str) -> HttpResponseBase:
        number = parse_number("id", list_id)
        return streams.payload_list(PayloadList.objects.filter(id=number), PayloadListNotFoundError(number))


class PayloadListByNameView(APIView):
    """One payload list with the number of its IOVs, by name."""

    @extend_schema(responses=PayloadListItem)
    def get(self, request: Request, name: str) -> Response:
        item = document(PayloadListItem, PayloadList.objects.filter(name=name))
        if item is None:
            raise PayloadListNotFoundError(name)
        return Response(item)


class PayloadListAttachView(APIView):
    """Attaching a payload list to a global tag, in place of the one of its type."""

    @extend_schema(request=PayloadListAttachInput, responses=PayloadListDocument)
    def put(self, request: Request) -> Response:
        names = read_body(request, PayloadListAttachInput)
        origin = read_origin(request)
        attached = payload_lists.attach_payload_list(**names, origin=origin)
        return Response(document_of(PayloadListDocument, attached))


class PayloadListDeleteView(APIView):
    """Deleting an empty payload list."""

    @extend_schema(request=None, responses={200: Statement})
    def delete(self, request: Request, name: str) -> Response:
        payload_lists.delete_payload_list(name=name, origin=read_origin(request))
        return Response({"detail": f"Payload list {name} deleted."})
