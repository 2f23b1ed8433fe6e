"""Analysis: the differences between global tags, affected moments, coverage, uses of payloads, and reasons for results."""

from collections.abc import Mapping
from dataclasses import replace

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from cdb_rest.analysis.difference import Key
from cdb_rest.analysis.uses import Payload
from cdb_rest.api import analysis
from cdb_rest.api.analysis_documents import (
    AffectedDocument,
    CoverageDocument,
    DifferenceDocument,
    ExplanationDocument,
    SummaryDocument,
    UseDocument,
)
from cdb_rest.api.analysis_inputs import MAX_AFFECTED_MOMENTS, AffectedInput
from cdb_rest.api.descriptions import AS_OF, NUMBER, TEXT, in_path, request_example, required, response_example
from cdb_rest.api.documents import one_of
from cdb_rest.api.examples import PAYLOAD_IOV
from cdb_rest.api.strict_view import StrictView
from cdb_rest.api.windows import WINDOW, read_payload_type, read_selection, read_window, window_between
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import END_OF_TIME, Moment
from cdb_rest.http.caching import Resource, conditional_get
from cdb_rest.http.lookup import read_query
from cdb_rest.parsing.fields import read_body
from cdb_rest.parsing.parameters import parse_as_of, parse_flag

SUMMARY = OpenApiParameter(
    "summary", str, enum=["0", "1"], description="1: for each payload type, the number of differences instead of them."
)
KEY = OpenApiParameter(
    "by", str, enum=[*Key], description="Payloads with equal URLs (default) or equal checksums are the same."
)


def _state_parameters(side: str) -> list[OpenApiParameter]:
    return [
        OpenApiParameter(f"rev_{side}", NUMBER, description=f"A revision of the global tag {side}."),
        OpenApiParameter(
            f"at_{side}",
            {"type": "string", "format": "date-time"},
            description=f"A time instead of a revision of the global tag {side}.",
        ),
    ]


class DifferencesView(StrictView):
    """The intervals in which two global tags have different payloads, by payload type in byte order, then by start.

    `a` and `b` are the payloads that a strict lookup returns in the interval, null for none. Each interval is as long as
    possible: neighbours with the same payloads are one. Each element is one line of the response.

    The commonest case is one tag in two states: `global-tags/tiny/diff/tiny?rev_a=1`. Equal tags have an empty array.
    Large comparisons count as exports: if `CDB_MAX_EXPORTS` are running, the response is 504.
    """

    query = [*_state_parameters("a"), *_state_parameters("b"), *WINDOW, KEY, SUMMARY]

    @extend_schema(
        summary="List the differences between two global tags",
        parameters=[
            in_path("a", "Name of the global tag a.", "tiny"),
            in_path("b", "Name of the global tag b.", "tiny"),
        ],
        responses=one_of(DifferenceDocument(many=True), SummaryDocument()),
        examples=[
            response_example([]),
            response_example({"payload_types": [], "differences": 0}, "With summary=1"),
        ],
    )
    def get(self, request: Request, a: str, b: str) -> HttpResponseBase:
        query = request.query_params
        scope = analysis.Scope(
            (a, _read_as_of(query, "a")), (b, _read_as_of(query, "b")), read_payload_type(query), read_window(query),
            _read_key(query.get("by", Key.URL)),
        )  # fmt: skip
        wants_summary = parse_flag("summary", query.get("summary"))
        window = scope.window
        parts = (scope.payload_type, *window.start, *window.end, scope.key.value, wants_summary, settings.CDB_IOV_MODE)
        resource = Resource.tags("diff", [scope.a, scope.b], *parts)
        not_modified = conditional_get(request.META, resource)
        respond = analysis.summary if wants_summary else analysis.differences
        return not_modified or respond(request, scope, resource.digest)


class AffectedView(StrictView):
    """The moments at which a global tag has other payloads than in another state, or than another tag.

    The tag of the path is compared in the state `from_rev` or `from_at` with `to`: `tag`, `rev` or `at`; by default, the
    present of the same tag. The response has those of the `moments` at which a strict lookup returns another payload, in groups
    by the payload types that differ. Without `moments`, it has the intervals in which any payload type differs.
    """

    max_moments = MAX_AFFECTED_MOMENTS

    @extend_schema(
        summary="List affected moments",
        parameters=[in_path("name", "Name of the global tag.", "tiny")],
        request=AffectedInput,
        responses=AffectedDocument,
        examples=[
            request_example({"from_rev": 1, "to": {"tag": "tiny"}, "moments": [[5, 0], [6, 0]]}),
            response_example({"affected": 0, "groups": []}),
        ],
    )
    def post(self, request: Request, name: str) -> HttpResponseBase:
        values = read_body(request, AffectedInput)
        other = values.get("to", {})
        scope = analysis.Scope(
            (name, parse_as_of(_texts(values, {"from_rev": "rev", "from_at": "at"}))),
            (other.get("tag", name), parse_as_of(_texts(other, {"rev": "rev", "at": "at"}))),
            values.get("payload_type"),
            window_between(values.get("since", Moment(0, 0)), values.get("until", END_OF_TIME)),
            _read_key(values["by"]),
        )
        return analysis.affected(scope, values.get("moments"))


class CoverageView(StrictView):
    """The gaps of a global tag: intervals of the window in which a strict lookup has no IOV, by payload type.

    `complete` says that there are none. `required` are names of payload types, separated by commas: a type that the tag
    does not have is reported as well. Without `since` and `until`, the window is the whole axis of moments.
    """

    query = [
        *WINDOW,
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
        selection = read_selection(query, name)
        types = [one for one in query.get("required", "").split(",") if one]
        window = selection.window
        parts = (selection.payload_type, *window.start, *window.end, types, settings.CDB_IOV_MODE)
        resource = Resource.tags("coverage", [(name, selection.as_of)], *parts)
        not_modified = conditional_get(request.META, resource)
        return not_modified or analysis.covered(request, selection, types, resource.digest)


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
            message = "Exactly one of payload_url, url_prefix and checksum is required, and it must not be empty."
            raise InvalidInputError(message, {"payload_url": [message]})
        payload = Payload(given.get("payload_url"), given.get("url_prefix"), given.get("checksum"))
        return analysis.used(payload, with_removed=parse_flag("removed", query.get("removed")))


class ExplanationView(StrictView):
    """Why a strict lookup has this result: the row, the change that put it there, and what it replaced; by payload type.

    `reason` is `valid`, `ended` (the IOV with the latest start has ended), `not_started` (no IOV starts at the moment or
    before) or `no_payload_list`. If there is no valid IOV now, but there was one before, `change` removed it.
    """

    query = [
        required("gtName", TEXT, "Name of the global tag.", "tiny"),
        required("majorIOV", NUMBER, "Major part of the moment.", 5),
        required("minorIOV", NUMBER, "Minor part of the moment.", 0),
        OpenApiParameter("payload_type", str, description="Only this payload type."),
        *AS_OF,
    ]

    @extend_schema(
        summary="Get the reasons for the result of a lookup",
        responses=ExplanationDocument(many=True),
        examples=[
            response_example(
                {
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
        lookup, payload_type = replace(read_query(query), only_valid=True), read_payload_type(query)
        parts = (*lookup.moment, payload_type, lookup.mode.value)
        resource = Resource.tags("explain", [(lookup.tag, lookup.as_of)], *parts)
        not_modified = conditional_get(request.META, resource)
        return not_modified or analysis.explained(request, lookup, payload_type, resource.digest)


def _read_as_of(query: Mapping[str, str], side: str) -> AsOf | None:
    return parse_as_of(_texts(query, {f"rev_{side}": "rev", f"at_{side}": "at"}))


def _texts(values: Mapping[str, object], names: Mapping[str, str]) -> dict[str, str]:
    """The values that are given, as texts, by other names."""
    return {other: str(values[name]) for name, other in names.items() if name in values}


def _read_key(text: str) -> Key:
    if text not in [*Key]:
        message = f"by must be {' or '.join(Key)}."
        raise InvalidInputError(message, {"by": [message]})
    return Key(text)
