"""Comparison: the differences between global tags, or between states of a tag, and the moments that they affect."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial

from django.conf import settings
from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from cdb_rest.analysis.affected import AffectedIntervals, AffectedMoments
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, Key, Scope, TypeSummary, difference_lines, spans, summaries
from cdb_rest.api.base.conversion import Document, Shape, one_of
from cdb_rest.api.base.descriptions import NUMBER, base_parameter, in_path, request_example, response_example
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import array_of_lines, object_with_array, respond, respond_cached
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.windows import (
    WINDOW,
    OneOrManyField,
    PayloadDocument,
    PayloadTypesInput,
    SpanDocument,
    interval_document,
    payload_types_of,
    read_window,
    tags_of,
    window_between,
)
from cdb_rest.http.caching import Resource, combined
from cdb_rest.http.lookup import TagParameters, read_tags
from cdb_rest.lookup.model import State
from cdb_rest.parsing.fields import (
    MEMBERS_OF_READS,
    Input,
    MomentField,
    MomentsField,
    NumberField,
    TextField,
    read_body,
)
from cdb_rest.parsing.parameters import PAYLOAD_TYPES, parse_flag, parse_payload_types
from cdb_rest.rules.errors import invalid_field, quoted
from cdb_rest.rules.moment import END_OF_TIME, Moment
from cdb_rest.rules.names import NAME_LENGTH


class DifferenceDocument(SpanDocument):
    """An interval in which two global tags have different payloads of a type: `a` and `b`, null for none."""

    payload_type = serializers.CharField()
    a = PayloadDocument(allow_null=True)
    b = PayloadDocument(allow_null=True)


class TypeSummaryDocument(Shape):
    """The number of differences of a payload type, with the first and the last one."""

    payload_type = serializers.CharField()
    differences = serializers.IntegerField()
    first = SpanDocument()
    last = SpanDocument()


class SummaryDocument(Shape):
    """The payload types in which two global tags differ, and the number of all differences."""

    payload_types = TypeSummaryDocument(many=True)
    differences = serializers.IntegerField()


class AffectedGroup(Shape):
    """Moments at which exactly these payload types differ."""

    payload_types = serializers.ListField(child=serializers.CharField())
    moments = serializers.ListField(child=MomentField())


class AffectedDocument(Shape):
    """What differs between two states: moments, if the request has any, or else intervals.

    `groups` have the moments by the payload types that differ. `intervals` are the union over the `payload_types`.
    """

    affected = serializers.IntegerField()
    groups = AffectedGroup(many=True, required=False)
    payload_types = serializers.ListField(child=serializers.CharField(), required=False)
    intervals = SpanDocument(many=True, required=False)


def summary_document(found: TypeSummary) -> Document:
    """A `TypeSummaryDocument`."""
    return {
        "payload_type": found.payload_type,
        "differences": found.differences,
        "first": interval_document(interval_between(*found.first)),
        "last": interval_document(interval_between(*found.last)),
    }


MAX_AFFECTED_MOMENTS = 100_000


class StateInput(Input):
    """A state of a global tag, or of several ones: the present, a revision, or a time."""

    also_known = MEMBERS_OF_READS
    tag = TextField(max_length=NAME_LENGTH, required=False)
    base = OneOrManyField(TextField(max_length=NAME_LENGTH), required=False)
    rev = OneOrManyField(NumberField(allow_null=True), required=False)
    at = TextField(required=False)


class AffectedInput(PayloadTypesInput):
    """What to compare the tag of the path with, and the moments of interest.

    `from_rev` or `from_at` is the past state of the tag. `to` is the other state, by default the present of the same tag.
    `base` are further tags after that of the path.
    """

    base = OneOrManyField(TextField(max_length=NAME_LENGTH), required=False)
    from_rev = OneOrManyField(NumberField(allow_null=True), required=False)
    from_at = TextField(required=False)
    to = StateInput(required=False)
    moments = MomentsField(MAX_AFFECTED_MOMENTS, required=False)
    since = MomentField(required=False)
    until = MomentField(required=False)
    by = serializers.ChoiceField(choices=["url", "checksum"], default="url")


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

    repeatable = ("base_a", "rev_a", "base_b", "rev_b", *PAYLOAD_TYPES)

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
            parse_payload_types(lists),
            read_window(query),
            _read_key(query.get("by", Key.URL)),
        )
        wants_summary = parse_flag("summary", query.get("summary"))
        window = scope.window
        parts = (
            len(scope.a),
            tuple(scope.payload_types),
            *window.start,
            *window.end,
            scope.key.value,
            wants_summary,
            settings.CDB_IOV_MODE,
        )
        resource = Resource.tags("diff", [*scope.a, *scope.b], *parts)
        return respond_cached(request, resource, partial(summary if wants_summary else differences, scope))


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
            payload_types_of(values),
            window_between(values.get("since", Moment(0, 0)), values.get("until", END_OF_TIME)),
            _read_key(values["by"]),
        )
        return affected(scope, values.get("moments"))


def _read_key(text: str) -> Key:
    if text not in [*Key]:
        raise invalid_field("by", f"by must be {' or '.join(Key)} (got {quoted(text)}).")
    return Key(text)


def differences(scope: Scope) -> tuple[State, Iterator[bytes]]:
    """A JSON array of the differences, one per line, by payload type in byte order, then by start."""
    comparison = scope.read()
    return _state_of(comparison), array_of_lines(difference_lines(comparison))


def summary(scope: Scope) -> tuple[State, Iterator[bytes]]:
    """A JSON object: the payload types that differ, and the number of differences."""
    total = 0

    def documents(batches: Iterable[list[TypeSummary]]) -> Iterator[list[Document]]:
        nonlocal total
        for batch in batches:
            total += sum(item.differences for item in batch)
            yield [summary_document(item) for item in batch]

    comparison = scope.read()
    rows = documents(summaries(comparison))
    return _state_of(comparison), object_with_array("payload_types", rows, lambda: {"differences": total})


def affected(scope: Scope, moments: Sequence[Moment] | None) -> HttpResponseBase:
    """A JSON object: which of the moments have different payloads; without moments, in which intervals payloads differ."""

    def pieces() -> Generator[bytes]:
        found = AffectedIntervals() if moments is None else AffectedMoments(moments)
        for number, item in enumerate(spans(scope.read()), 1):
            # So that a proxy does not give up.
            if number % 50 == 0:
                yield b"\n"
            found.add(item)
        if isinstance(found, AffectedIntervals):
            types, intervals = found.found()
            yield dump(
                {
                    "affected": len(intervals),
                    "payload_types": types,
                    "intervals": [interval_document(interval) for interval in intervals],
                }
            )
            return
        groups = found.found()
        documents = [{"payload_types": types, "moments": [list(moment) for moment in hit]} for types, hit in groups]
        yield dump({"affected": sum(len(hit) for _, hit in groups), "groups": documents})

    return respond(pieces())


def _state_of(comparison: Comparison) -> State:
    return combined(comparison.a.states + comparison.b.states)
