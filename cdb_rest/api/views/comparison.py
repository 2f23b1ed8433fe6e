"""Comparison: the differences between global tags, or between states of a tag, and the moments that they affect."""

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from cdb_rest.analysis.difference import Key, Scope
from cdb_rest.api import analysis
from cdb_rest.api.analysis_documents import AffectedDocument, DifferenceDocument, SummaryDocument
from cdb_rest.api.analysis_inputs import MAX_AFFECTED_MOMENTS, AffectedInput, tags_of
from cdb_rest.api.descriptions import NUMBER, base_parameter, in_path, request_example, response_example
from cdb_rest.api.documents import one_of
from cdb_rest.api.inputs import StrictView
from cdb_rest.api.windows import WINDOW, read_payload_type, read_window, window_between
from cdb_rest.http.caching import Resource, conditional_get
from cdb_rest.http.lookup import TagParameters, read_tags
from cdb_rest.parsing.fields import read_body
from cdb_rest.parsing.parameters import parse_flag
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import END_OF_TIME, Moment

SUMMARY = OpenApiParameter(
    "summary", str, enum=["0", "1"], description="1: for each payload type, the number of differences instead of them."
)
KEY = OpenApiParameter(
    "by", str, enum=[*Key], description="Payloads with equal URLs (default) or equal checksums are the same."
)


def _state_parameters(side: str) -> list[OpenApiParameter]:
    return [
        base_parameter(f"base_{side}"),
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

    With `base_a`, `a` and its bases are several tags as in a lookup, and so are `b` and `base_b`: to see what a patch changes,
    compare it, with its base, with the base. `base_a` may be repeated; `rev_a` is then given for each tag.
    """

    repeatable = ("base_a", "rev_a", "base_b", "rev_b")

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
        lists = dict(query.lists())
        scope = Scope(
            read_tags(lists, TagParameters("base_a", "rev_a", "at_a"), a),
            read_tags(lists, TagParameters("base_b", "rev_b", "at_b"), b),
            read_payload_type(query),
            read_window(query),
            _read_key(query.get("by", Key.URL)),
        )
        wants_summary = parse_flag("summary", query.get("summary"))
        window = scope.window
        parts = (
            len(scope.a),
            scope.payload_type,
            *window.start,
            *window.end,
            scope.key.value,
            wants_summary,
            settings.CDB_IOV_MODE,
        )
        resource = Resource.tags("diff", [*scope.a, *scope.b], *parts)
        not_modified = conditional_get(request.META, resource)
        respond = analysis.summary if wants_summary else analysis.differences
        return not_modified or respond(request, scope, resource.digest)


class AffectedView(StrictView):
    """The moments at which a global tag has other payloads than in another state, or than another tag.

    The tag of the path is compared in the state `from_rev` or `from_at` with `to`: `tag`, `rev` or `at`; by default, the
    present of the same tag. The response has those of the `moments` at which a strict lookup returns another payload, in groups
    by the payload types that differ. Without `moments`, it has the intervals in which any payload type differs.

    `base` and the `base` in `to` are further tags, as in a lookup in several tags; `from_rev` and `rev` are then arrays.
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
        # Another state of the same tag has the same bases by default.
        other = ({} if "tag" in other else {"tag": name, "base": values.get("base", [])}) | other
        scope = Scope(
            tags_of(values, TagParameters("base", "from_rev", "from_at"), name),
            tags_of(other, TagParameters("base"), other["tag"]),
            values.get("payload_type"),
            window_between(values.get("since", Moment(0, 0)), values.get("until", END_OF_TIME)),
            _read_key(values["by"]),
        )
        return analysis.affected(scope, values.get("moments"))


def _read_key(text: str) -> Key:
    if text not in [*Key]:
        raise invalid_field("by", f"by must be {' or '.join(Key)} (got {text}).")
    return Key(text)
