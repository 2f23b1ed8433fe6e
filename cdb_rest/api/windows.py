"""The query parameters of routes that read a window of moments: `since`, `until` and `payload_type`."""

from collections.abc import Mapping

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter

from cdb_rest.exports.export import Selection
from cdb_rest.parsing.parameters import parse_as_of, parse_moment_text
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
