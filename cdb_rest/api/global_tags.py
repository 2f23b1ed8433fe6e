"""Global tags: consistent sets of payloads, each with a status that says which changes are permitted."""

from functools import partial

from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Shape, one_of
from cdb_rest.api.base.descriptions import AS_OF, in_path, request_example, response_example
from cdb_rest.api.base.json_stream import can_detect_truncation
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import OptionalBodyView, Statement, respond_hot
from cdb_rest.api.base.writes import optional_member, respond_to_write
from cdb_rest.api.examples import GLOBAL_TAG, LIGHT_GLOBAL_TAG, NESTED_GLOBAL_TAG, STATUS, page_of
from cdb_rest.api.nested import (
    GlobalTagItem,
    LightGlobalTag,
    NestedGlobalTag,
    past_item,
    past_nested_tag,
    past_payload_lists,
    stream_cacheable_global_tag,
    stream_global_tag,
    stream_global_tags,
)
from cdb_rest.api.payload_types import NamedDocument, NamedInput
from cdb_rest.http.caching import Resource, conditional_get, headers_of
from cdb_rest.lookup.model import State
from cdb_rest.models import GlobalTag
from cdb_rest.parsing.fields import Input, NameField, TextField, read_body, read_value
from cdb_rest.parsing.parameters import PAST, parse_as_of, parse_number
from cdb_rest.routes import Hot
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.names import NAME_LENGTH, TEXT_LENGTH
from cdb_rest.writes import global_tags


class GlobalTagDocument(Shape):
    """A global tag as a write returns it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    author = serializers.CharField()
    status = serializers.CharField(source="status.name")
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField()


class NameInput(Input):
    """The name of an object that is to be created."""

    name = NameField()


class CloneInput(Input):
    """What the body of a clone may have."""

    author = TextField(max_length=NAME_LENGTH, required=False, allow_blank=True)


class GlobalTagInput(Input):
    """A new global tag."""

    name = NameField()
    status = TextField(max_length=NAME_LENGTH)
    author = TextField(max_length=NAME_LENGTH, required=False, allow_blank=True)
    description = TextField(max_length=TEXT_LENGTH, required=False, allow_blank=True)


GLOBAL_TAGS = Browser(
    shape=GlobalTagItem,
    rows=GlobalTag.objects.all,
    search=("name", "author", "description"),
    sort={
        "name": "name",
        "id": "id",
        "author": "author",
        "status": "status__name",
        "created": "created",
        "updated": "updated",
        "payload_lists_count": "payload_lists_count",
        "payload_iov_count": "payload_iov_count",
    },
    filters={"status": "status__name"},
)

NAME = in_path("name", "Name of the global tag.", "tiny")


class GlobalTagListView(APIView):
    """All global tags, ordered by id, with their numbers of payload lists and IOVs; with `page`, one page of them."""

    @extend_schema(
        summary="List global tags",
        parameters=GLOBAL_TAGS.parameters(),
        responses=GLOBAL_TAGS.list_or_page(GlobalTagItem),
        examples=[response_example([GLOBAL_TAG]), response_example(page_of(GLOBAL_TAG, 1), "With page=1")],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if GLOBAL_TAGS.wants_page(request.query_params):
            return Response(GLOBAL_TAGS.page(request.query_params))
        return respond_hot(request, Hot.GLOBAL_TAGS)


class _CreatesGlobalTag(APIView):
    @extend_schema(
        summary="Create a global tag",
        request=GlobalTagInput,
        responses=GlobalTagDocument,
        examples=[
            request_example({"name": "mine", "status": "unlocked", "author": "me", "description": "A first try"})
        ],
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a global tag without payload lists.

        `status` is the name of a status: `unlocked` for a tag that is to be filled.
        """
        service = partial(global_tags.create_global_tag, **read_body(request, GlobalTagInput))
        return respond_to_write(request, service, GlobalTagDocument)


class GlobalTagCollectionView(GlobalTagListView, _CreatesGlobalTag):
    """All global tags, ordered by id, with their numbers of payload lists and IOVs; with `page`, one page of them."""


class NestedGlobalTagListView(_CreatesGlobalTag):
    """All global tags with all their payload lists and IOVs; with `page`, one page of them, with counts instead."""

    @extend_schema(
        summary="List global tags with their contents",
        parameters=GLOBAL_TAGS.parameters(),
        responses=GLOBAL_TAGS.list_or_page(NestedGlobalTag),
        examples=[response_example([NESTED_GLOBAL_TAG]), response_example(page_of(GLOBAL_TAG, 1), "With page=1")],
    )
    def get(self, request: Request) -> HttpResponseBase:
        if GLOBAL_TAGS.wants_page(request.query_params):
            return Response(GLOBAL_TAGS.page(request.query_params))
        return stream_global_tags(GlobalTag.objects.all())


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
        return stream_global_tag(GlobalTag.objects.filter(id=number), GlobalTagNotFoundError(number))


class GlobalTagByNameView(APIView):
    """One global tag with all its payload lists and IOVs; with `light`, only with their numbers."""

    known = {"GET": PAST}

    @extend_schema(
        summary="Get a global tag",
        parameters=[
            NAME,
            OpenApiParameter("light", str, description="Counts instead of contents, with any value."),
            *AS_OF,
        ],
        responses=one_of(NestedGlobalTag(), LightGlobalTag()),
        examples=[response_example(NESTED_GLOBAL_TAG), response_example(LIGHT_GLOBAL_TAG, "With light=1")],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        # With any value, also 0, as in nopayloaddb. nginx.conf selects the pool by the same rule.
        light = "light" in request.query_params
        as_of = parse_as_of(request.query_params)
        if light and as_of is None:
            return respond_hot(request, Hot.GLOBAL_TAG, name)
        resource = Resource.tag(name, light=light, as_of=as_of)
        not_modified = conditional_get(request.META, resource)
        if not_modified:
            return not_modified
        if as_of is not None and light:
            return past_item(name, as_of, resource.digest)
        if as_of is not None:
            return past_nested_tag(request, name, as_of, resource.digest)
        found = GlobalTag.objects.filter(name=name)
        if not can_detect_truncation(request):
            # A truncated response cannot be detected in HTTP/1.0, so it must not be cached: no validators.
            return stream_global_tag(found, GlobalTagNotFoundError(name))
        return stream_cacheable_global_tag(
            found,
            GlobalTagNotFoundError(name),
            lambda tag: headers_of(State(tag["version"], tag["status"]["name"], tag["modified"]), resource.digest),
        )


class GlobalTagDeleteView(OptionalBodyView):
    """Delete a global tag with its payload lists and IOVs. The response is 409 unless the tag is unlocked."""

    @extend_schema(
        summary="Delete a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny-copy")],
        request=None,
        responses={200: Statement},
    )
    def delete(self, request: Request, name: str) -> HttpResponse:
        service = partial(global_tags.delete_global_tag, name=name)
        return respond_to_write(request, service, lambda _: {"detail": f"Global tag {name} deleted."})


class GlobalTagCloneView(OptionalBodyView):
    """Copy a global tag of any status, also one that was deleted (`rev`, `at`).

    The copy has the same IOVs in new payload lists, and is unlocked. Its author is the `author` of the body, or the client
    without one.
    """

    known = {"POST": (*PAST, "dry_run")}

    @extend_schema(
        summary="Clone a global tag",
        parameters=[
            in_path("source", "Name of the global tag to copy.", "tiny"),
            in_path("target", "Name of the copy.", "tiny-copy"),
            *AS_OF,
        ],
        request=CloneInput,
        responses=GlobalTagItem,
        examples=[request_example({"author": "the calibration group"})],
    )
    def post(self, request: Request, source: str, target: str) -> HttpResponse:
        name = read_value({"name": target}, NameInput)["name"]
        values = read_value({"author": optional_member(request, "author")}, CloneInput)
        as_of = parse_as_of(request.query_params)
        service = partial(global_tags.clone_global_tag, source=source, target=name, as_of=as_of, **values)
        return respond_to_write(request, service, GlobalTagItem)


class GlobalTagStatusChangeView(OptionalBodyView):
    """Change the status of a global tag, which determines the changes that are permitted.

    An unlocked tag may change in any way, and may get any status. A locked tag may only be extended where nothing is
    defined yet, and may only become unlocked or frozen. The same applies to a tag with a status that was created. A
    frozen tag never changes again, and neither does its status. A change of status that is not permitted gets 409.
    """

    @extend_schema(
        summary="Change the status of a global tag",
        parameters=[
            NAME,
            in_path("status", "Name of the status: unlocked, locked, frozen, or another one.", "unlocked"),
        ],
        request=None,
        responses=GlobalTagDocument,
    )
    def put(self, request: Request, name: str, status: str) -> HttpResponse:
        service = partial(global_tags.change_status, name=name, status=status)
        return respond_to_write(request, service, GlobalTagDocument)


class GlobalTagStatusListView(APIView):
    """All statuses, ordered by id: the built-in ones, and those that were created."""

    @extend_schema(summary="List statuses", responses=NamedDocument(many=True), examples=[response_example(STATUS)])
    def get(self, request: Request) -> HttpResponseBase:
        return respond_hot(request, Hot.STATUSES)

    @extend_schema(
        summary="Create a status",
        request=NamedInput,
        responses=NamedDocument,
        examples=[request_example({"name": "reviewed", "description": "Checked by the calibration group"})],
    )
    def post(self, request: Request) -> HttpResponse:
        """Create a status of the experiment. It protects a global tag as `locked` does."""
        service = partial(global_tags.create_status, **read_body(request, NamedInput))
        return respond_to_write(request, service, NamedDocument)


class GlobalTagStatusDeleteView(OptionalBodyView):
    """Delete a status that was created. The response is 409 if a global tag has it, and for the built-in statuses."""

    @extend_schema(
        summary="Delete a status",
        parameters=[in_path("name", "Name of the status.", "reviewed")],
        request=None,
        responses={200: Statement},
    )
    def delete(self, request: Request, name: str) -> HttpResponse:
        service = partial(global_tags.delete_status, name=name)
        return respond_to_write(request, service, lambda _: {"detail": f"Status {name} deleted."})


class PayloadListsOfGlobalTagView(APIView):
    """An object with the name of the payload list for each payload type of the tag."""

    known = {"GET": PAST}

    @extend_schema(
        summary="List the payload lists of a global tag",
        parameters=[NAME, *AS_OF],
        responses={200: {"type": "object", "additionalProperties": {"type": "string"}}},
        examples=[response_example({"Pixel_Alignment": "Pixel_Alignment_1"})],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        as_of = parse_as_of(request.query_params)
        if as_of is None:
            return respond_hot(request, Hot.PAYLOAD_LISTS, name)
        resource = Resource.payload_lists(name, as_of)
        return conditional_get(request.META, resource) or past_payload_lists(name, as_of, resource.digest)
