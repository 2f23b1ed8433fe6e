"""Export: the IOVs of a global tag as a file."""

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from cdb_rest.api import streams
from cdb_rest.api.descriptions import in_path
from cdb_rest.api.strict_view import StrictView
from cdb_rest.domain.errors import InvalidInputError
from cdb_rest.domain.moment import END_OF_TIME, Interval, Mode, Moment
from cdb_rest.domain.names import CONTROL_CHARACTER
from cdb_rest.parsing.parameters import parse_moment
from cdb_rest.services.export import Form, Selection, check_selection, export

MEDIA_TYPES = {Form.CSV: "text/csv; charset=utf-8", Form.JSONL: "application/x-ndjson"}
MOMENT = {"type": "string", "pattern": "^[0-9]{1,19},[0-9]{1,19}$"}
QUERY = [
    OpenApiParameter("format", str, enum=[*Form], description="csv (default), or jsonl: one JSON object a line."),
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


class ExportView(StrictView):
    """A CSV or JSON Lines file with a row for each selected IOV of the tag. It is streamed and may have any size.

    An error after the start truncates the file; HTTP/1.1 clients report that. A request by HTTP/1.0 gets 400. If
    `CDB_MAX_EXPORTS` exports are running, the response is 504.
    """

    query = QUERY

    @extend_schema(
        summary="Export a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny")],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request, name: str) -> StreamingHttpResponse:
        selection, form = _read_selection(request, name)
        if not streams.can_detect_truncation(request):
            message = "An export requires HTTP/1.1: with HTTP/1.0 a truncated file cannot be detected."
            raise InvalidInputError(message)
        headers = {
            "Content-Type": MEDIA_TYPES[form],
            "Content-Disposition": content_disposition_header(True, _file_name(selection, form)),
            "Cache-Control": "no-store",
            # A proxy that buffers the response would fill its disk.
            streams.UNBUFFERED: "no",
        }
        if request.method == "HEAD":
            check_selection(selection)
            return StreamingHttpResponse((), headers=headers)
        # Last, because this starts the export, which ends when the response is closed.
        return StreamingHttpResponse(streams.Body(export(selection, form)), headers=headers)


def _read_selection(request: Request, name: str) -> tuple[Selection, Form]:
    query = request.query_params
    form = query.get("format", Form.CSV)
    if form not in [*Form]:
        message = f"format must be {' or '.join(Form)}."
        raise InvalidInputError(message, {"format": [message]})
    since = _read_moment("since", query.get("since"), Moment(0, 0))
    until = _read_moment("until", query.get("until"), END_OF_TIME)
    window = Interval.from_wire(since, until, Mode(settings.CDB_IOV_MODE))
    if window.is_empty:
        message = f"The window from {since} to {until} is empty."
        raise InvalidInputError(message, {"until": [message]})
    payload_type = query.get("payload_type")
    if payload_type == "":
        message = "payload_type must not be empty; leave it out to get all of them."
        raise InvalidInputError(message, {"payload_type": [message]})
    return Selection(name, payload_type, window), Form(form)


def _read_moment(name: str, text: str | None, default: Moment) -> Moment:
    """The moment of a text in the format `major,minor`, or `default` for None. Raises `InvalidInputError`."""
    if text is None:
        return default
    halves = text.split(",")
    if len(halves) != 2:
        message = f"{name} must be two numbers separated by a comma: major,minor."
        raise InvalidInputError(message, {name: [message]})
    return parse_moment((name, name), (halves[0], halves[1]))


def _file_name(selection: Selection, form: Form) -> str:
    """The name of the file, from those of tag and payload type, with `_` for slashes and control characters."""
    parts = [selection.global_tag, *([selection.payload_type] if selection.payload_type else [])]
    return f"{CONTROL_CHARACTER.sub('_', '-'.join(parts)).replace('/', '_')}.{form}"
