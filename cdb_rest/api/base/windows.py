"""What routes about tags in a window of moments share: query parameters, members of bodies, and documents."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from cdb_rest.api.base.conversion import Document, Shape
from cdb_rest.exports.export import Selection
from cdb_rest.http.lookup import LOOKUP_PARAMETERS, TagParameters, read_tags
from cdb_rest.parsing.fields import MomentField
from cdb_rest.parsing.parameters import parse_as_of, parse_moment_text
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode, Moment

MOMENT = {"type": "string", "pattern": "^[0-9]{1,19},[0-9]{1,19}$"}
WINDOW = [
    OpenApiParameter("payload_type", str, description="Only the IOVs of this payload type."),
    OpenApiParameter(
        "since", MOMENT, description="major,minor: only IOVs that are valid at this moment or start later."
    ),
    OpenApiParameter(
        "until",
        MOMENT,
        description="major,minor: only IOVs that start before; inclusive if the ends of IOVs are.",
    ),
]


def read_selection(query: Mapping[str, str], name: str) -> Selection:
    """What the query string selects from the global tag `name`. Raises `InvalidInputError`."""
    return Selection(name, read_payload_type(query), read_window(query), parse_as_of(query))


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


def read_payload_type(query: Mapping[str, str]) -> str | None:
    """The parameter `payload_type`, or None. Raises `InvalidInputError` if it is empty."""
    payload_type = query.get("payload_type")
    if payload_type == "":
        raise invalid_field("payload_type", "payload_type must not be empty; leave it out to get all of them.")
    return payload_type


class PayloadDocument(Shape):
    """A payload without an interval."""

    payload_url = serializers.CharField()
    checksum = serializers.CharField()
    size = serializers.IntegerField()
    revision = serializers.CharField(allow_null=True)


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
