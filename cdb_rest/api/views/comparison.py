"""Comparison: the differences between global tags, or between states of a tag, and the moments that they affect."""

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from cdb_rest.analysis.difference import Key, Scope
from cdb_rest.api import analysis
from cdb_rest.api.analysis_documents import AffectedDocument, DifferenceDocument, SummaryDocument
from cdb_rest.api.analysis_inputs import MAX_AFFECTED_MOMENTS, AffectedInput
from cdb_rest.api.descriptions import NUMBER, in_path, request_example, response_example
from cdb_rest.api.documents import one_of
from cdb_rest.api.strict_view import StrictView
from cdb_rest.api.windows import WINDOW, read_payload_type, read_window, window_between
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import END_OF_TIME, Moment
from cdb_rest.http.caching import Resource, conditional_get
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
        scope = Scope(
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
        scope = Scope(
            (name, parse_as_of(_texts(values, {"from_rev": "rev", "from_at": "at"}))),
            (other.get("tag", name), parse_as_of(_texts(other, {"rev": "rev", "at": "at"}))),
            values.get("payload_type"),
            window_between(values.get("since", Moment(0, 0)), values.get("until", END_OF_TIME)),
            _read_key(values["by"]),
        )
        return analysis.affected(scope, values.get("moments"))


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
