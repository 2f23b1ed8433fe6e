"""Export: the IOVs of a global tag as a file."""

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from cdb_rest.api.base import json_stream
from cdb_rest.api.base.descriptions import AS_OF, in_path
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.windows import WINDOW, read_selection
from cdb_rest.exports.export import Form, Selection, Source, export, find_source
from cdb_rest.http.caching import REVISION_HEADER, Resource, conditional_get, headers_of
from cdb_rest.lookup.model import past_state
from cdb_rest.parsing.parameters import PAYLOAD_TYPES
from cdb_rest.rules.errors import InvalidInputError, invalid_field, quoted
from cdb_rest.rules.names import CONTROL_CHARACTER

MEDIA_TYPES = {Form.CSV: "text/csv; charset=utf-8", Form.JSONL: "application/x-ndjson"}
QUERY = [
    OpenApiParameter("format", str, enum=[*Form], description="csv (default), or jsonl: one JSON object a line."),
    *WINDOW,
    *AS_OF,
]


class ExportView(StrictView):
    """A CSV or JSON Lines file with a row for each selected IOV of the tag. It is streamed and may have any size.

    An error after the start truncates the file; HTTP/1.1 clients report that. A request by HTTP/1.0 gets 400.
    """

    query = QUERY
    repeatable = PAYLOAD_TYPES

    @extend_schema(
        summary="Export a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny")],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/x-ndjson"): OpenApiTypes.STR},
    )
    def get(self, request: Request, name: str) -> HttpResponseBase:
        form = _read_form(request.query_params)
        selection = read_selection(request.query_params, name)
        if not json_stream.can_detect_truncation(request):
            message = "An export requires HTTP/1.1: with HTTP/1.0 a truncated file cannot be detected."
            raise InvalidInputError(message)
        resource = _resource(selection, form)
        not_modified = conditional_get(request.META, resource) if resource else None
        if not_modified:
            return not_modified
        headers = {
            "Content-Type": MEDIA_TYPES[form],
            "Content-Disposition": content_disposition_header(True, _file_name(selection, form)),
            "Cache-Control": "no-store",
            # A proxy that buffers the response would fill its disk.
            json_stream.UNBUFFERED: "no",
        }

        def note_source(source: Source) -> None:
            headers.update(_headers_of(source, selection, resource))

        if request.method == "HEAD":
            note_source(find_source(selection))
            return StreamingHttpResponse((), headers=headers)
        # It starts the export, which ends when the response is closed.
        body = json_stream.Body(export(selection, form, note_source))
        return StreamingHttpResponse(body, headers=headers)


def _resource(selection: Selection, form: Form) -> Resource | None:
    """The resource of an export of the past. An export of the present has no ETag."""
    if selection.as_of is None:
        return None
    window = selection.window
    parts = (selection.payload_types, *window.start, *window.end, settings.CDB_IOV_MODE, form.value)
    return Resource.export(selection.global_tag, selection.as_of, *parts)


def _headers_of(source: Source, selection: Selection, resource: Resource | None) -> dict[str, str]:
    # Caches may store an export of the past: clients and caches that speak HTTP/1.1 detect a truncated one.
    if source.past is None or selection.as_of is None or resource is None:
        return {REVISION_HEADER: str(source.revision)}
    return headers_of(past_state(source.past.version, selection.as_of), resource.digest)


def _read_form(query: Mapping[str, str]) -> Form:
    form = query.get("format", Form.CSV)
    if form not in [*Form]:
        raise invalid_field("format", f"format must be {' or '.join(Form)} (got {quoted(form)}).")
    return Form(form)


def _file_name(selection: Selection, form: Form) -> str:
    """The name of the file, from those of the tag and the only payload type, with `_` for slashes and control characters."""
    parts = [selection.global_tag, *(selection.payload_types if len(selection.payload_types) == 1 else ())]
    return f"{CONTROL_CHARACTER.sub('_', '-'.join(parts)).replace('/', '_')}.{form}"
