"""Views of global tags and their statuses."""

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api import streams
from cdb_rest.api.browsers import GLOBAL_TAGS
from cdb_rest.api.conditional import Subject, answer_if_kept, headers_of
from cdb_rest.api.documents import (
    GlobalTagDocument,
    GlobalTagItem,
    NamedDocument,
    NestedGlobalTag,
    Statement,
    document_of,
    documents,
    one_of,
)
from cdb_rest.api.fields import parse_number, read_body, read_value
from cdb_rest.api.inputs import GlobalTagInput, NamedInput, NameInput
from cdb_rest.api.paging import wants_page
from cdb_rest.api.writes import read_origin
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.lookup.state import VERSION_OF_NONE, State, state_of_all
from cdb_rest.models import GlobalTag, GlobalTagStatus
from cdb_rest.services import global_tags


class GlobalTagListView(APIView):
    """All global tags with their counts, or a page of them."""

    @extend_schema(parameters=GLOBAL_TAGS.parameters(), responses=GLOBAL_TAGS.list_or_page(GlobalTagItem))
    def get(self, request: Request) -> HttpResponseBase:
        if wants_page(request.query_params):
            return Response(GLOBAL_TAGS.page(request.query_params))
        subject = Subject.all_tags()
        kept = answer_if_kept(request.META, subject)
        if kept:
            return kept
        items = documents(GlobalTagItem, GlobalTag.objects.with_version_of_all().order_by("id"), ("version",))
        versions = [item.pop("version") for item in items]
        state = state_of_all(versions[0] if versions else VERSION_OF_NONE)
        return Response(items, headers=headers_of(state, subject.digest))


class _CreatesGlobalTag(APIView):
    @extend_schema(request=GlobalTagInput, responses=GlobalTagDocument)
    def post(self, request: Request) -> Response:
        """Create an empty global tag."""
        values = read_body(request, GlobalTagInput)
        tag = global_tags.create_global_tag(**values, origin=read_origin(request))
        return Response(document_of(GlobalTagDocument, tag))


class GlobalTagCollectionView(GlobalTagListView, _CreatesGlobalTag):
    """All global tags with their counts, or a page of them."""


class NestedGlobalTagListView(_CreatesGlobalTag):
    """All global tags with everything in them, or a page of them with their counts."""

    @extend_schema(parameters=GLOBAL_TAGS.parameters(), responses=GLOBAL_TAGS.list_or_page(NestedGlobalTag))
    def get(self, request: Request) -> HttpResponseBase:
        if wants_page(request.query_params):
            return Response(GLOBAL_TAGS.page(request.query_params))
        return streams.global_tags(GlobalTag.objects.all())


class GlobalTagByIdView(APIView):
    """One global tag with everything in it, by id."""

    @extend_schema(responses=NestedGlobalTag)
    def get(self, request: Request, tag_id: str) -> HttpResponseBase:
        number = parse_number("id", tag_id)
        return streams.global_tag(GlobalTag.objects.filter(id=number), GlobalTagNotFoundError(number))


class GlobalTagByNameView(APIView):
    """One global tag with everything in it, or with its counts only, by name."""

    @extend_schema(
        parameters=[OpenApiParameter("light", str, description="Counts instead of contents, whatever the value.")],
        responses=one_of(NestedGlobalTag(), GlobalTagItem()),
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        light = "light" in request.query_params
        subject = Subject.tag(name, light=light)
        kept = answer_if_kept(request.META, subject)
        if kept:
            return kept
        found = GlobalTag.objects.filter(name=name)
        if not light and not streams.shows_its_end(request):
            # There, a body that breaks off looks like one that has ended, and nobody must keep such a one.
            return streams.global_tag(found, GlobalTagNotFoundError(name))
        if not light:
            return streams.conditional_global_tag(
                found,
                GlobalTagNotFoundError(name),
                lambda tag: headers_of(State(tag["version"], tag["status"]["name"], tag["modified"]), subject.digest),
            )
        items = documents(GlobalTagItem, found.with_version(), ("version", "modified"))
        if not items:
            raise GlobalTagNotFoundError(name)
        state = State(items[0].pop("version"), items[0]["status"], items[0].pop("modified"))
        return Response(items[0], headers=headers_of(state, subject.digest))


class GlobalTagDeleteView(APIView):
    """Deleting a global tag with everything in it."""

    @extend_schema(request=None, responses={200: Statement})
    def delete(self, request: Request, name: str) -> Response:
        global_tags.delete_global_tag(name=name, origin=read_origin(request))
        return Response({"detail": f"Global tag {name} deleted."})


class GlobalTagCloneView(APIView):
    """Copying a global tag with everything in it."""

    @extend_schema(request=None, responses=GlobalTagItem)
    def post(self, request: Request, source: str, target: str) -> Response:
        target = read_value({"name": target}, NameInput)["name"]
        clone = global_tags.clone_global_tag(source=source, target=target, origin=read_origin(request))
        return Response(document_of(GlobalTagItem, clone))


class GlobalTagStatusChangeView(APIView):
    """Giving a global tag another status."""

    @extend_schema(request=None, responses=GlobalTagDocument)
    def put(self, request: Request, name: str, status: str) -> Response:
        tag = global_tags.change_status(name=name, status=status, origin=read_origin(request))
        return Response(document_of(GlobalTagDocument, tag))


class GlobalTagStatusListView(APIView):
    """All statuses."""

    @extend_schema(responses=NamedDocument(many=True))
    def get(self, request: Request) -> Response:
        return Response(documents(NamedDocument, GlobalTagStatus.objects.order_by("id")))

    @extend_schema(request=NamedInput, responses=NamedDocument)
    def post(self, request: Request) -> Response:
        """Create a status of the experiment's own; it protects like locked."""
        status = global_tags.create_status(**read_body(request, NamedInput))
        return Response(document_of(NamedDocument, status))


class PayloadListsOfGlobalTagView(APIView):
    """The name of the payload list of each payload type that a global tag has."""

    @extend_schema(responses={200: {"type": "object", "additionalProperties": {"type": "string"}}})
    def get(self, request: Request, name: str) -> HttpResponseBase:
        subject = Subject.payload_lists(name)
        kept = answer_if_kept(request.META, subject)
        if kept:
            return kept
        rows = (
            GlobalTag.objects.filter(name=name)
            .with_version()
            .values_list(
                "version", "status__name", "modified", "payload_lists__payload_type__name", "payload_lists__name"
            )
        )
        if not rows:
            raise GlobalTagNotFoundError(name)
        # A tag without lists is one row without names.
        names = dict(sorted(row[3:] for row in rows if row[3] is not None))
        return Response(names, headers=headers_of(State(*rows[0][:3]), subject.digest))
