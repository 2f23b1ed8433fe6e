"""Clearing: an interval in which no payload of a type is valid any more."""

from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from cdb_rest.api.base.conversion import Document
from cdb_rest.api.base.descriptions import request_example
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.writes import is_dry_run, respond_to_write
from cdb_rest.api.plans import CutsDocument, cuts_document
from cdb_rest.parsing.fields import Input, MomentField, TextField, UntilField, read_body
from cdb_rest.rules.access import Origin
from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode
from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH
from cdb_rest.writes.clearing import Clearing, clear_interval


class IntervalInput(Input):
    """The interval in which a payload type is to have no payload."""

    payload_type = TextField(max_length=NAME_LENGTH)
    since = MomentField()
    until = UntilField()

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Replace `since` and `until` by `interval`."""
        since, until = attributes.pop("since"), attributes.pop("until")
        if until == "next":
            raise serializers.ValidationError({"until": 'until must be a moment or "open".'})
        end = END_OF_TIME if until == "open" else until
        return attributes | {"interval": Interval.from_wire(since, end, Mode(settings.CDB_IOV_MODE))}


class ClearInput(IntervalInput):
    """The interval, and the global tag; `reason` is for the change log."""

    global_tag = TextField(max_length=NAME_LENGTH)
    reason = TextField(max_length=COMMENT_LENGTH)


class ClearingResult(CutsDocument):
    """The response to a clearing: the changes of existing IOVs.

    If it is `unchanged`, no payload was valid. `revision` is the new one of the tag, null in a dry run and if nothing changed.
    """

    detail = serializers.CharField()
    dry_run = serializers.BooleanField()
    unchanged = serializers.BooleanField()
    revision = serializers.IntegerField(allow_null=True)


EXAMPLE = {
    "global_tag": "tiny",
    "payload_type": "Pixel_Alignment",
    "since": [5, 0],
    "until": [6, 0],
    "reason": "The detector was off",
    "dry_run": True,
}


class PayloadIOVClearView(StrictView):
    """Make no payload of a type valid in an interval; outside of it nothing changes. With `dry_run`, nothing changes.

    IOVs in the interval are trimmed, moved, split or detached, and the response lists them. `until` is a moment, `[7, "end"]`
    for the end of major number 7, or `"open"`.

    The response is 409 if a payload is valid in the interval and the tag is not unlocked, or closed there.
    """

    @extend_schema(
        summary="Clear an interval of a payload type",
        request=ClearInput,
        responses=ClearingResult,
        examples=[request_example(EXAMPLE)],
    )
    def post(self, request: Request) -> HttpResponse:
        values, dry_run = read_body(request, ClearInput), is_dry_run(request)
        reason = values.pop("reason")

        def clear(origin: Origin) -> Clearing:
            return clear_interval(**values, origin=replace(origin, comment=reason))

        def document(found: Clearing) -> Document:
            cuts = found.placement.cuts
            summary = f"existing IOVs cut: {len(cuts)}."
            return {
                "detail": f"Dry run, nothing was changed: {summary}" if dry_run else summary[0].upper() + summary[1:],
                "dry_run": dry_run,
                "unchanged": not cuts,
                "revision": None if dry_run else found.revision,
            } | cuts_document(cuts)

        return respond_to_write(request, clear, document)
