"""Global tags: consistent sets of payloads, each with a status that says which changes are permitted."""

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api import streams
from cdb_rest.api.browsers import GLOBAL_TAGS
from cdb_rest.api.descriptions import in_path, request_example, response_example
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
from cdb_rest.api.examples import GLOBAL_TAG, NESTED_GLOBAL_TAG, STATUS, page_of
from cdb_rest.api.inputs import GlobalTagInput, NamedInput, NameInput
from cdb_rest.api.paging import wants_page
from cdb_rest.api.writes import read_origin
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.http.caching import Subject, answer_if_kept, headers_of
from cdb_rest.lookup.queries import VERSION_OF_NONE, state_of_all
from cdb_rest.lookup.question import State
from cdb_rest.models import GlobalTag, GlobalTagStatus
from cdb_rest.parsing.fields import read_body, read_value
from cdb_rest.parsing.parameters import is_light, parse_number
from cdb_rest.services import global_tags

NAME = in_path("name", "Name of the global tag.", "tiny")


class GlobalTagListView(APIView):
    """All global tags by id, with the numbers of their payload lists and IOVs; or with `page` a page of them."""

    @extend_schema(
        summary="List global tags",
        parameters=GLOBAL_TAGS.parameters(),
        responses=GLOBAL_TAGS.list_or_page(GlobalTagItem),
        examples=[response_example([GLOBAL_TAG]), response_example(page_of(GLOBAL_TAG, 1), "With page=1")],
    )
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
    @extend_schema(
        summary="Create a global tag",
        request=GlobalTagInput,
        responses=GlobalTagDocument,
        examples=[
            request_example({"name": "mine", "status": "unlocked", "author": "me", "description": "A first try"})
        ],
    )
    def post(self, request: Request) -> Response:
        """The new tag has no payload lists. `status` is the name of one: `unlocked` for a tag that is to be filled."""
        values = read_body(request, GlobalTagInput)
        tag = global_tags.create_global_tag(**values, origin=read_origin(request))
        return Response(document_of(GlobalTagDocument, tag))


class GlobalTagCollectionView(GlobalTagListView, _CreatesGlobalTag):
    """All global tags by id, with the numbers of their payload lists and IOVs; or with `page` a page of them."""


class NestedGlobalTagListView(_CreatesGlobalTag):
    """All global tags with all their payload lists and IOVs, which may be large; or with `page` a page of them with counts."""

    @extend_schema(
        summary="List global tags with their contents",
        parameters=GLOBAL_TAGS.parameters(),
        responses=GLOBAL_TAGS.list_or_page(NestedGlobalTag),
        examples=[response_example([NESTED_GLOBAL_TAG]), response_example(page_of(GLOBAL_TAG, 1), "With page=1")],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if wants_page(request.query_params):
            return Response(GLOBAL_TAGS.page(request.query_params))
        return streams.global_tags(GlobalTag.objects.all())


class GlobalTagByIdView(APIView):
    """One global tag with all its payload lists and IOVs."""

    @extend_schema(
        summary="Get a global tag by id",
        parameters=[in_path("tag_id", "Id of the global tag.", 1)],
        responses=NestedGlobalTag,
        examples=[response_example(NESTED_GLOBAL_TAG)],
    )
    def get(self, request: Request, tag_id: str) -> HttpResponseBase:
        number = parse_number("id", tag_id)
        return streams.global_tag(GlobalTag.objects.filter(id=number), GlobalTagNotFoundError(number))


class GlobalTagByNameView(APIView):
    """One global tag with all its payload lists and IOVs, which may be large; or with `light` only with their numbers."""

    @extend_schema(
        summary="Get a global tag",
        parameters=[
            NAME,
            OpenApiParameter("light", str, description="Counts instead of contents, unless the value is 0 or false."),
        ],
        responses=one_of(NestedGlobalTag(), GlobalTagItem()),
        examples=[response_example(NESTED_GLOBAL_TAG), response_example(GLOBAL_TAG, "With light=1")],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        light = is_light(request.query_params.getlist("light"))
        subject = Subject.tag(name, light=light)
        kept = answer_if_kept(request.META, subject)
        if kept:
            return kept
        found = GlobalTag.objects.filter(name=name)
        if not light and not streams.can_detect_truncation(request):
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
    """The payload lists and IOVs of the tag are deleted with it. Refused with 409 unless the tag is unlocked."""

    @extend_schema(
        summary="Delete a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny-copy")],
        request=None,
        responses={200: Statement},
    )
    def delete(self, request: Request, name: str) -> Response:
        global_tags.delete_global_tag(name=name, origin=read_origin(request))
        return Response({"detail": f"Global tag {name} deleted."})


class GlobalTagCloneView(APIView):
    """The copy has the same IOVs, in payload lists of its own, and is unlocked."""

    @extend_schema(
        summary="Clone a global tag",
        parameters=[
            in_path("source", "Name of the global tag to copy.", "tiny"),
            in_path("target", "Name of the copy.", "tiny-copy"),
        ],
        request=None,
        responses=GlobalTagItem,
    )
    def post(self, request: Request, source: str, target: str) -> Response:
        target = read_value({"name": target}, NameInput)["name"]
        clone = global_tags.clone_global_tag(source=source, target=target, origin=read_origin(request))
        return Response(document_of(GlobalTagItem, clone))


class GlobalTagStatusChangeView(APIView):
    """In an unlocked tag anything may change. A locked one may only grow where nothing is defined yet; a frozen one never changes
    again, nor does its status."""

    @extend_schema(
        summary="Change the status of a global tag",
        parameters=[
            NAME,
            in_path("status", "Name of the status: unlocked, locked, frozen, or another one.", "unlocked"),
        ],
        request=None,
        responses=GlobalTagDocument,
    )
    def put(self, request: Request, name: str, status: str) -> Response:
        tag = global_tags.change_status(name=name, status=status, origin=read_origin(request))
        return Response(document_of(GlobalTagDocument, tag))


class GlobalTagStatusListView(APIView):
    """All statuses by id: those of the service, and those that were created."""

    @extend_schema(summary="List statuses", responses=NamedDocument(many=True), examples=[response_example(STATUS)])
    def get(self, request: Request) -> Response:
        return Response(documents(NamedDocument, GlobalTagStatus.objects.order_by("id")))

    @extend_schema(
        summary="Create a status",
        request=NamedInput,
        responses=NamedDocument,
        examples=[request_example({"name": "reviewed", "description": "Checked by the calibration group"})],
    )
    def post(self, request: Request) -> Response:
        """A status of the experiment's own. It protects a global tag as `locked` does."""
        status = global_tags.create_status(**read_body(request, NamedInput))
        return Response(document_of(NamedDocument, status))


class PayloadListsOfGlobalTagView(APIView):
    """An object: for each payload type that the tag has, the name of its payload list."""

    @extend_schema(
        summary="List the payload lists of a global tag",
        parameters=[NAME],
        responses={200: {"type": "object", "additionalProperties": {"type": "string"}}},
        examples=[response_example({"Pixel_Alignment": "Pixel_Alignment_1"})],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        subject = Subject.payload_lists(name)
        kept = answer_if_kept(request.META, subject)
        if kept:
            return kept
        tags = GlobalTag.objects.filter(name=name).with_version()
        # The plugin of the types does not see what `with_version` adds.
        rows = tags.values_list(  # type: ignore[misc]
            "version", "status__name", "modified", "payload_lists__payload_type__name", "payload_lists__name"
        )
        if not rows:
            raise GlobalTagNotFoundError(name)
        # A tag without lists is one row without names.
        names = {kind: payload_list for *_, kind, payload_list in rows if kind is not None}
        version, status, modified, *_ = rows[0]
        state = State(version, status, modified)
        return Response(dict(sorted(names.items())), headers=headers_of(state, subject.digest))
