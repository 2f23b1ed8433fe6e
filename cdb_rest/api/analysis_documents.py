"""The documents in responses of analyses, and the functions that make them from the results of `cdb_rest.analysis`."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework import serializers

from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.coverage import TypeCoverage
from cdb_rest.analysis.difference import TypeSummary
from cdb_rest.analysis.explanation import Explanation, Reason
from cdb_rest.api.documents import Document, Shape
from cdb_rest.models import GlobalTagChange
from cdb_rest.parsing.fields import MomentField
from cdb_rest.rules.moment import Interval, Mode

# The members of a row, with their columns in the statements of the analysis.
ROW_MEMBERS = {"payload_url": "payload_url", "checksum": "checksum", "size": "size", "revision": "extra"} | {
    name: name for name in ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
}


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


class TypeCoverageDocument(Shape):
    """The coverage by a payload type. `first_start` and `last_end` are those of its valid IOVs in the window, or null.

    `covered` is the share of the window's moments that have a valid IOV, from 0 to 1, rounded.
    """

    payload_type = serializers.CharField()
    has_payload_list = serializers.BooleanField()
    covered = serializers.FloatField()
    first_start = MomentField(allow_null=True)
    last_end = MomentField(allow_null=True)
    gaps = SpanDocument(many=True)


class CoverageDocument(Shape):
    """The coverage of a window by a global tag. It is complete if there are no gaps."""

    payload_types = TypeCoverageDocument(many=True)
    complete = serializers.BooleanField()


class ChangeReference(Shape):
    """A change of a global tag, without its contents."""

    revision = serializers.IntegerField()
    time = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    comment = serializers.CharField()


class RowDocument(PayloadDocument):
    """A payload with its interval of validity."""

    major_iov = serializers.IntegerField()
    minor_iov = serializers.IntegerField()
    major_iov_end = serializers.IntegerField()
    minor_iov_end = serializers.IntegerField()


class UseDocument(RowDocument):
    """A payload in a payload list of a global tag. `removed` is the change that ended the use, null for the present.

    `global_tag` is null if the list is detached.
    """

    global_tag = serializers.CharField(allow_null=True)
    payload_type = serializers.CharField()
    payload_list = serializers.CharField()
    removed = ChangeReference(allow_null=True)


class ExplanationDocument(Shape):
    """Why a strict lookup has this result for a payload type, or why this global tag does not decide it.

    `payload_iov` is the row with the latest start at or before the moment. `change` is the change since which its payload
    is valid at the moment, or since which none is; null if it has always been so or is not recorded. `replaced` is what was
    valid before.
    """

    global_tag = serializers.CharField()
    payload_type = serializers.CharField()
    payload_list = serializers.CharField(allow_null=True)
    reason = serializers.ChoiceField(choices=[*Reason])
    payload_iov = RowDocument(allow_null=True)
    change = ChangeReference(allow_null=True)
    replaced = RowDocument(allow_null=True)


class ManyLookupsDocument(Shape):
    """The moments that have the same result, and its rows.

    Instead of `rows`, there may be `same_as`: the number of an earlier element with the same rows, counted from 0.
    """

    moments = serializers.ListField(child=MomentField())
    rows = serializers.ListField(child=serializers.ListField(), required=False)
    same_as = serializers.IntegerField(required=False)


def interval_document(interval: Interval) -> Document:
    """A `SpanDocument`."""
    since, until = interval.on_wire(Mode(settings.CDB_IOV_MODE))
    return {"since": list(since), "until": list(until)}


def summary_document(found: TypeSummary) -> Document:
    """A `TypeSummaryDocument`."""
    return {
        "payload_type": found.payload_type,
        "differences": found.differences,
        "first": interval_document(interval_between(*found.first)),
        "last": interval_document(interval_between(*found.last)),
    }


def coverage_document(found: TypeCoverage) -> Document:
    """A `TypeCoverageDocument`."""
    extent = {"since": None, "until": None} if found.extent is None else interval_document(found.extent)
    return {
        "payload_type": found.payload_type,
        "has_payload_list": found.has_list,
        "covered": found.covered,
        "first_start": extent["since"],
        "last_end": extent["until"],
        "gaps": [interval_document(gap) for gap in found.gaps],
    }


def _row_document(row: Mapping[str, Any] | None) -> Document | None:
    return None if row is None else {name: row[column] for name, column in ROW_MEMBERS.items()}


def _change_document(change: GlobalTagChange | None) -> Document | None:
    if change is None:
        return None
    return {
        "revision": change.revision,
        "time": change.created,
        "actor": change.actor,
        "action": change.action,
        "comment": change.comment,
    }


def explanation_document(found: Explanation) -> Document:
    """An `ExplanationDocument`."""
    return {
        "global_tag": found.global_tag,
        "payload_type": found.payload_type,
        "payload_list": found.payload_list,
        "reason": found.reason,
        "payload_iov": _row_document(found.row),
        "change": _change_document(found.change),
        "replaced": _row_document(found.replaced),
    }


def use_document(row: dict[str, Any]) -> Document:
    """A `UseDocument`, from the columns of `uses` (sql/analysis.sql)."""
    names = ("global_tag", "payload_type", "payload_list")
    removed = {name: row[f"removed_{name}"] for name in ("revision", "time", "actor", "action", "comment")}
    return {
        **{name: row[name] for name in names},
        **{name: row[name] for name in ROW_MEMBERS},
        "removed": removed if removed["revision"] is not None else None,
    }
