"""Analysis: the coverage of global tags, the uses of payloads, and the reasons for the results of lookups."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from cdb_rest.analysis.coverage import Selection, TypeCoverage, coverage
from cdb_rest.analysis.explanation import Explanation, Reason, explain
from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.api.base.conversion import Document, Shape, document_of
from cdb_rest.api.base.descriptions import AS_OF, NUMBER, TEXT, base_parameter, in_path, required, response_example
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import array, object_with_array, respond, respond_cached
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.windows import (
    PAYLOAD_TYPE_PARAMETERS,
    WINDOW,
    RowDocument,
    SpanDocument,
    interval_document,
    read_window,
)
from cdb_rest.api.examples import PAYLOAD_IOV
from cdb_rest.http.caching import Resource, combined
from cdb_rest.http.lookup import TagParameters, read_tags
from cdb_rest.lookup.model import State
from cdb_rest.parsing.fields import MomentField
from cdb_rest.parsing.parameters import PAYLOAD_TYPES, parse_flag, parse_moment, parse_payload_types
from cdb_rest.rules.errors import invalid_field

# The members of a row, with their columns in the statements of the analysis.
ROW_MEMBERS = {"payload_url": "payload_url", "checksum": "checksum", "size": "size", "revision": "extra"} | {
    name: name for name in ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
}


class TypeCoverageDocument(Shape):
    """The coverage by a payload type. `first_start` and `last_end` are those of its valid IOVs in the window, or null.

    `covered` is the share of the window's moments that have a valid IOV, from 0 to 1, rounded.
    """

    payload_type = serializers.CharField()
    has_payload_list = serializers.BooleanField()
    covered = serializers.FloatField()
    first_start = MomentField(allow_null=True)
    last_end = MomentField(allow_null=True)
    gaps = SpanDocument(many=True)


class CoverageDocument(Shape):
    """The coverage of a window by a global tag. It is complete if there are no gaps."""

    payload_types = TypeCoverageDocument(many=True)
    complete = serializers.BooleanField()


class ChangeReference(Shape):
    """A change of a global tag, without its contents."""

    revision = serializers.IntegerField()
    time = serializers.DateTimeField(source="created")
    actor = serializers.CharField()
    action = serializers.CharField()
    comment = serializers.CharField()


class UseDocument(RowDocument):
    """A payload in a payload list of a global tag. `removed` is the change that ended the use, null for the present.

    `global_tag` is null if the list is detached.
    """

    global_tag = serializers.CharField(allow_null=True)
    payload_type = serializers.CharField()
    payload_list = serializers.CharField()
    removed = ChangeReference(allow_null=True)


class ExplanationDocument(Shape):
    """Why a strict lookup has this result for a payload type, or why this global tag does not decide it.

    `payload_iov` is the row with the latest start at or before the moment. `change` is the change since which its payload
    is valid at the moment, or since which none is; null if it has always been so or is not recorded. `replaced` is what was
    valid before. `added_by` is the client that added the row while it or its list was in no tag, if that is known.
    """

    global_tag = serializers.CharField()
    payload_type = serializers.CharField()
    payload_list = serializers.CharField(allow_null=True)
    reason = serializers.ChoiceField(choices=[*Reason])
    payload_iov = RowDocument(allow_null=True)
    change = ChangeReference(allow_null=True)
    replaced = RowDocument(allow_null=True)
    added_by = serializers.CharField(allow_null=True)


def coverage_document(found: TypeCoverage) -> Document:
    """A `TypeCoverageDocument`."""
    extent = {"since": None, "until": None} if found.extent is None else interval_document(found.extent)
    return {
        "payload_type": found.payload_type,
        "has_payload_list": found.has_list,
        "covered": found.covered,
        "first_start": extent["since"],
        "last_end": extent["until"],
        "gaps": [interval_document(gap) for gap in found.gaps],
    }


def _row_document(row: Mapping[str, Any] | None) -> Document | None:
    return None if row is None else {name: row[column] for name, column in ROW_MEMBERS.items()}


def explanation_document(found: Explanation) -> Document:
    """An `ExplanationDocument`."""
    return {
        "global_tag": found.global_tag,
        "payload_type": found.payload_type,
        "payload_list": found.payload_list,
        "reason": found.reason,
        "payload_iov": _row_document(found.row),
        "change": found.change and document_of(ChangeReference, found.change),
        "replaced": _row_document(found.replaced),
        "added_by": found.added_by,
    }


def use_document(row: dict[str, Any]) -> Document:
    """A `UseDocument`, from the columns of `uses` (sql/analysis.sql)."""
    names = ("global_tag", "payload_type", "payload_list")
    removed = {name: row[f"removed_{name}"] for name in ("revision", "time", "actor", "action", "comment")}
    return {
        **{name: row[name] for name in names},
        **{name: row[name] for name in ROW_MEMBERS},
        "removed": removed if removed["revision"] is not None else None,
    }


class CoverageView(StrictView):
    """The gaps of a global tag: intervals of the window in which a strict lookup has no IOV, by payload type.

    `complete` says that there are none. `required` are names of payload types, separated by commas: a type that the tag
    does not have is reported as well. Without `since` and `until`, the window is the whole axis of moments.

    With `base`, the tag and its bases are several tags as in a lookup. `base` may be repeated, and `rev` is given for each tag.
    """

    repeatable = ("base", "rev", *PAYLOAD_TYPES)
    query = [
        *WINDOW,
        base_parameter("base"),
        OpenApiParameter("required", str, description="Payload types that the tag must have, separated by commas."),
        *AS_OF,
    ]

    @extend_schema(
        summary="Get the coverage of a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny")],
        responses=CoverageDocument,
        examples=[
            response_example(
                {
                    "payload_types": [
                        {
                            "payload_type": "Pixel_Alignment",
                            "has_payload_list": True,
                            "covered": 1.0,
                            "first_start": [5, 0],
                            "last_end": [6, 0],
                            "gaps": [],
                        }
                    ],
                    "complete": True,
                },
                "With since=5,0&until=6,0&required=Pixel_Alignment",
            )
        ],
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        query = request.query_params
        lists = dict(query.lists())
        tags = read_tags(lists, TagParameters("base"), name)
        types = [item for item in query.get("required", "").split(",") if item]
        selection = Selection(tags, parse_payload_types(lists), read_window(query), types)
        window = selection.window
        parts = (selection.payload_types, *window.start, *window.end, types, settings.CDB_IOV_MODE)
        resource = Resource.tags("coverage", tags, *parts)
        return respond_cached(request, resource, partial(covered, selection))


class UsesView(StrictView):
    """The global tags, payload lists and intervals in which payloads are used. Exactly one parameter says which payloads.

    With `removed=1`, uses of the past are included: `removed` is the change of the tag that ended the use.
    """

    query = [
        OpenApiParameter("payload_url", str, description="The URL of the payload."),
        OpenApiParameter("url_prefix", str, description="The beginning of the URLs of payloads."),
        OpenApiParameter("checksum", str, description="The checksum of the payload."),
        OpenApiParameter("removed", str, enum=["0", "1"], description="1: also uses of the past."),
    ]

    @extend_schema(
        summary="List the uses of a payload",
        responses=UseDocument(many=True),
        examples=[
            response_example(
                {
                    "global_tag": "tiny",
                    "payload_type": "Pixel_Alignment",
                    "payload_list": "Pixel_Alignment_1",
                    "payload_url": PAYLOAD_IOV["payload_url"],
                    "removed": None,
                },
                "With url_prefix=Pixel_Alignment",
            )
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        query = request.query_params
        given = {name: query[name] for name in ("payload_url", "url_prefix", "checksum") if query.get(name)}
        if len(given) != 1:
            raise invalid_field(
                "payload_url",
                "Exactly one of payload_url, url_prefix and checksum is required, and it must not be empty.",
            )
        payload = Payload(given.get("payload_url"), given.get("url_prefix"), given.get("checksum"))
        with_removed = parse_flag("removed", query.get("removed"))

        def pieces() -> Generator[bytes]:
            # In the snapshot of the response.
            yield from array((dump(use_document(row)),) for row in uses(payload, with_removed=with_removed))

        return respond(pieces())


class ExplanationView(StrictView):
    """Why a strict lookup has this result: the row, the change that put it there, and what it replaced; by payload type.

    `reason` is `valid`, `ended` (the IOV with the latest start has ended), `not_started` (no IOV starts at the moment or
    before) or `no_payload_list`. If there is no valid IOV now, but there was one before, `change` removed it.

    `gtName` may be given several times, as in a lookup. Then a payload type has one element for each tag, in their order, up to
    the first tag in which an IOV is valid.
    """

    repeatable = ("gtName", "rev", *PAYLOAD_TYPES)
    query = [
        required("gtName", TEXT, "Name of the global tag.", "tiny"),
        required("majorIOV", NUMBER, "Major part of the moment.", 5),
        required("minorIOV", NUMBER, "Minor part of the moment.", 0),
        *PAYLOAD_TYPE_PARAMETERS,
        *AS_OF,
    ]

    @extend_schema(
        summary="Get the reasons for the result of a lookup",
        responses=ExplanationDocument(many=True),
        examples=[
            response_example(
                {
                    "global_tag": "tiny",
                    "payload_type": "Pixel_Alignment",
                    "payload_list": "Pixel_Alignment_1",
                    "reason": "valid",
                    "replaced": None,
                }
            )
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        query = request.query_params
        lists = dict(query.lists())
        tags, payload_types = read_tags(lists), parse_payload_types(lists)
        moment = parse_moment(("majorIOV", "minorIOV"), (query.get("majorIOV"), query.get("minorIOV")))
        resource = Resource.tags("explain", tags, *moment, payload_types, settings.CDB_IOV_MODE)

        def read() -> tuple[State, Iterator[bytes]]:
            states, found = explain(tags=tags, moment=moment, payload_types=payload_types)
            return combined(states), iter((dump([explanation_document(item) for item in found]),))

        return respond_cached(request, resource, read)


def covered(selection: Selection) -> tuple[State, Iterator[bytes]]:
    """A JSON object: the coverage of a window by each payload type of the tags, and by those that are required."""
    complete = True

    def documents(batches: Iterable[list[TypeCoverage]]) -> Iterator[list[Document]]:
        nonlocal complete
        for batch in batches:
            complete = complete and not any(item.gaps for item in batch)
            yield [coverage_document(item) for item in batch]

    contents = selection.read()
    rows = documents(coverage(contents, selection))
    return combined(contents.states), object_with_array("payload_types", rows, lambda: {"complete": complete})
