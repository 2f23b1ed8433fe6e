"""Importing: all rows of a file into a global tag, in one request."""

import io
from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.base.conversion import Shape
from cdb_rest.api.base.descriptions import in_path, response_example
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.writes import is_dry_run, respond_to_write
from cdb_rest.api.examples import IMPORT
from cdb_rest.api.plans import IntervalDocument, interval_document
from cdb_rest.parsing.iov_files import Options, read_iov_rows
from cdb_rest.parsing.parameters import parse_flag
from cdb_rest.rules.access import Role
from cdb_rest.writes.effects import Kind
from cdb_rest.writes.imports import ImportOptions, ImportResult, import_payload_iovs


class FileParser(BaseParser):
    """The body as bytes, whatever its media type is."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class TypeEffectsDocument(Shape):
    """The effects on a payload type: numbers of rows of the file (`added`, `unchanged`), of existing IOVs and of new gaps.

    `difference_count` is the number of intervals with another payload, and `interval` is from the first to the last one.
    """

    payload_type = serializers.CharField()
    added = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    shortened = serializers.IntegerField()
    starts_later = serializers.IntegerField()
    split = serializers.IntegerField()
    replaced = serializers.IntegerField()
    removed = serializers.IntegerField()
    gaps = serializers.IntegerField()
    interval = IntervalDocument(allow_null=True)
    difference_count = serializers.IntegerField()


class EffectWarningDocument(Shape):
    """A probable mistake. `rows` are the numbers of the first rows of the file that it is about: lines, from 1."""

    kind = serializers.ChoiceField([*Kind])
    payload_type = serializers.CharField()
    text = serializers.CharField()
    rows = serializers.ListField(child=serializers.IntegerField())
    count = serializers.IntegerField()
    needs_confirmation = serializers.BooleanField()


class ImportDocument(Shape):
    """The response to an import. `revision` is the new one of the tag, null in a dry run and if nothing changed."""

    detail = serializers.CharField()
    dry_run = serializers.BooleanField()
    unchanged = serializers.BooleanField()
    needs_confirmation = serializers.BooleanField()
    revision = serializers.IntegerField(allow_null=True)
    payload_lists_created = serializers.IntegerField()
    warnings = EffectWarningDocument(many=True)
    payload_types = TypeEffectsDocument(many=True)


FILE = 'payload_type,payload_url,checksum,since,until\nPixel_Alignment,pixel/run5.root,9e107d9d,"5,0","6,0"\n'
ROWS = [
    {
        "payload_type": "Pixel_Alignment",
        "payload_url": "pixel/run5.root",
        "checksum": "9e107d9d",
        "since": [5, 0],
        "until": [6, 0],
    }
]


class GlobalTagImportView(StrictView):
    """Insert all rows of a file, or none. The body is the file: CSV, a JSON array or JSON Lines, also as an export writes it.

    The response has the effects for each payload type, and warnings of probable mistakes. An import that would remove existing
    IOVs, or make a gap between IOVs, gets 409 unless it has `confirm=1`. With `dry_run=1`, nothing changes and no confirmation is
    needed.

    Errors name the lines of the file. The response is 409 if the tag is frozen, or if existing intervals of a tag that is not
    unlocked would change.
    """

    parser_classes = (FileParser,)
    query = (
        OpenApiParameter(
            "confirm", str, enum=["0", "1"], description="1: also if existing IOVs are removed or gaps are made."
        ),
        OpenApiParameter(
            "open_hides_later",
            str,
            enum=["0", "1"],
            description='1: an end "open" removes all later IOVs that are not in the file.',
        ),
        OpenApiParameter(
            "no_final_newline", str, enum=["0", "1"], description="1: the last line may lack its line break."
        ),
    )

    @extend_schema(
        summary="Import a file into a global tag",
        parameters=[in_path("name", "Name of the global tag.", "tiny")],
        request={"text/csv": str, "application/jsonl": str, "application/json": list[dict[str, Any]]},
        responses=ImportDocument,
        examples=[
            OpenApiExample("CSV", FILE, request_only=True, media_type="text/csv"),
            OpenApiExample("JSON", ROWS, request_only=True, media_type="application/json"),
            response_example(IMPORT, "With dry_run=1"),
        ],
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        flags = {item.name: parse_flag(item.name, request.query_params.get(item.name)) for item in self.query}
        dry_run = is_dry_run(request)
        # Before the file is read.
        principal_of(request.META).require(Role.CONTRIBUTOR, name)
        how = Options(may_be_cut=flags["no_final_newline"], max_rows=settings.CDB_MAX_BULK_ROWS)
        # The types expect parsed data. A request without a body has an empty dict.
        data: Any = request.data
        content: bytes = data or b""

        service = partial(
            import_payload_iovs,
            read=lambda: read_iov_rows(io.BytesIO(content), how),
            global_tag=name,
            options=ImportOptions(hides_later=flags["open_hides_later"]),
            confirmed=dry_run or flags["confirm"],
        )
        return respond_to_write(request, service, partial(import_document, dry_run=dry_run))


def import_document(found: ImportResult, *, dry_run: bool) -> dict[str, Any]:
    """The response to an import."""
    effects = found.effects
    added, unchanged, replaced, removed = (
        sum(getattr(item, name) for item in effects.types) for name in ("added", "unchanged", "replaced", "removed")
    )
    summary = f"payload IOVs inserted: {added}; unchanged: {unchanged}; existing IOVs replaced: {replaced}; removed: {removed}."
    return {
        "detail": f"Dry run, nothing was changed: {summary}" if dry_run else summary[0].upper() + summary[1:],
        "dry_run": dry_run,
        "unchanged": effects.changes_nothing,
        "needs_confirmation": effects.needs_confirmation,
        "revision": None if dry_run else found.revision,
        "payload_lists_created": effects.new_lists,
        "warnings": [
            asdict(warning) | {"needs_confirmation": warning.needs_confirmation} for warning in effects.warnings
        ],
        "payload_types": [
            vars(item) | {"interval": item.interval and interval_document(item.interval)} for item in effects.types
        ],
    }
