"""What routes about tags in a window of moments share: query parameters, members of bodies, and documents."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from cdb_rest.api.base.conversion import Document, Shape
from cdb_rest.exports.export import Selection
from cdb_rest.http.lookup import LOOKUP_PARAMETERS, TagParameters, read_tags
from cdb_rest.parsing.fields import MEMBERS_OF_READS, Input, MomentField, TextField
from cdb_rest.parsing.parameters import PAYLOAD_TYPES, parse_as_of, parse_moment_text, parse_payload_types
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode, Moment
from cdb_rest.rules.names import NAME_LENGTH

MOMENT = {"type": "string", "pattern": "^[0-9]{1,19},[0-9]{1,19}$"}
# The parameters of `parse_payload_types`.
PAYLOAD_TYPE_PARAMETERS = [
    OpenApiParameter(
        PAYLOAD_TYPES[0],
        str,
        many=True,
        description="Only these payload types. A value may have several names, separated by commas.",
    ),
    OpenApiParameter(PAYLOAD_TYPES[1], str, many=True, description=f"An alias of `{PAYLOAD_TYPES[0]}`."),
]
WINDOW = [
    *PAYLOAD_TYPE_PARAMETERS,
    OpenApiParameter(
        "since", MOMENT, description="major,minor: only IOVs that are valid at this moment or start later."
    ),
    OpenApiParameter(
        "until",
        MOMENT,
        description="major,minor: only IOVs that start before; inclusive if the ends of IOVs are.",
    ),
]


def read_selection(query: QueryDict, name: str) -> Selection:
    """What the query string selects from the global tag `name`. Raises `InvalidInputError`."""
    return Selection(name, parse_payload_types(dict(query.lists())), read_window(query), parse_as_of(query))


def read_window(query: Mapping[str, str]) -> Interval:
    """The window from `since` up to `until`; by default, all moments. Raises `InvalidInputError`, also if it is empty."""
    since = parse_moment_text("since", query["since"]) if "since" in query else Moment(0, 0)
    until = parse_moment_text("until", query["until"]) if "until" in query else END_OF_TIME
    return window_between(since, until)


def window_between(since: Moment, until: Moment) -> Interval:
    """The window with these ends in the wire format. Raises `InvalidInputError` if it is empty."""
    window = Interval.from_wire(since, until, Mode(settings.CDB_IOV_MODE))
    if window.is_empty:
        raise invalid_field("until", f"until must be after since (got since {since} and until {until}).")
    return window


class PayloadDocument(Shape):
    """A payload without an interval."""

    payload_url = serializers.CharField()
    checksum = serializers.CharField()
    size = serializers.IntegerField()
    revision = serializers.CharField(allow_null=True)


class RowDocument(PayloadDocument):
    """A payload with its interval of validity."""

    major_iov = serializers.IntegerField()
    minor_iov = serializers.IntegerField()
    major_iov_end = serializers.IntegerField()
    minor_iov_end = serializers.IntegerField()


class SpanDocument(Shape):
    """An interval of moments. Its end is written like the ends of IOVs: exclusive or inclusive, depending on the mode."""

    since = MomentField()
    until = MomentField()


def interval_document(interval: Interval) -> Document:
    """A `SpanDocument`."""
    since, until = interval.on_wire(Mode(settings.CDB_IOV_MODE))
    return {"since": list(since), "until": list(until)}


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class OneOrManyField(serializers.Field[list[Any], Any, Any, Any]):
    """A value, or an array of values; validated, an array. `child` validates each value."""

    def __init__(self, child: serializers.Field[Any, Any, Any, Any], **options: Any) -> None:
        super().__init__(**options)
        self._child = child

    def to_internal_value(self, data: Any) -> list[Any]:
        return [self._child.run_validation(value) for value in (data if isinstance(data, list) else [data])]


def tags_of(
    values: Mapping[str, Any], names: TagParameters = LOOKUP_PARAMETERS, first: str | None = None
) -> list[TagState]:
    """The global tags in the validated members with these names, as `read_tags`; null is an empty parameter."""
    given = {
        name: values[name] if isinstance(values[name], list) else [values[name]] for name in names if name in values
    }
    texts = {name: ["" if member is None else str(member) for member in members] for name, members in given.items()}
    return read_tags(texts, names, first)


class PayloadTypesInput(Input):
    """A read that may select payload types, each by one name. `payload_type` is an alias of `payloadType`."""

    also_known = MEMBERS_OF_READS
    payloadType = OneOrManyField(TextField(max_length=NAME_LENGTH), required=False)  # noqa: N815 -- as in the query string
    payload_type = OneOrManyField(TextField(max_length=NAME_LENGTH), required=False)


def payload_types_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The payload types in the members of a validated `PayloadTypesInput`, as `parse_payload_types`."""
    return tuple(sorted({name for member in PAYLOAD_TYPES for name in values.get(member, ())}))
