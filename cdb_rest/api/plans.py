"""The documents of insertions: what was inserted and which existing IOVs were changed, also for a dry run."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from rest_framework import serializers

from cdb_rest.api.base.conversion import Shape
from cdb_rest.models import PayloadIOV
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.moment import Interval, Mode
from cdb_rest.rules.timeline import Cut, TimelineRow
from cdb_rest.writes.insertion import Insertion
from cdb_rest.writes.placing import Placement
from cdb_rest.writes.rows import interval_of

MOMENT = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}


class IntervalDocument(Shape):
    """An interval in the wire format: two moments, or "open" or "next" for `until`."""

    since = serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2)
    until = serializers.JSONField()


class AddedDocument(IntervalDocument):
    """The IOV that is inserted; its id is null in a dry run."""

    id = serializers.IntegerField(allow_null=True)
    payload_url = serializers.CharField()


class CutDocument(Shape):
    """An existing IOV that was changed: its interval before, and the intervals that remain of it: none, one or two.

    `id` is null in a dry run if an earlier row of the request would insert the IOV.
    """

    id = serializers.IntegerField(allow_null=True)
    payload_url = serializers.CharField()
    before = IntervalDocument()
    after = IntervalDocument(many=True)


class CutsDocument(Shape):
    """The changes of existing IOVs by an insertion: they end earlier, start later, are split in two, or are removed
    from the list."""

    trimmed = CutDocument(many=True)
    moved = CutDocument(many=True)
    split = CutDocument(many=True)
    detached = CutDocument(many=True)


class PlanRow(CutsDocument):
    """The changes of a payload list by one row of the request. `row` is the number of that row, from 0.

    `payload_list` is null in a dry run if the list would be created. If the row is `unchanged`, its payload was valid in its
    whole interval already, and `added` is the existing IOV.
    """

    row = serializers.IntegerField()
    unchanged = serializers.BooleanField()
    global_tag = serializers.CharField()
    payload_type = serializers.CharField()
    payload_list = serializers.CharField(allow_null=True)
    list_created = serializers.BooleanField()
    added = AddedDocument()


class Refusal(Shape):
    """The error that the request would get if it were not a dry run."""

    code = serializers.CharField()
    detail = serializers.CharField()
    rows = serializers.ListField(child=serializers.JSONField())


class InsertionResult(Shape):
    """The response to an insertion. `revisions` has the new revisions of the tags by name; it is empty in a dry run, and if all
    rows are `unchanged`.

    `refused` is null, except in a dry run whose request would be rejected with `iov_overlap` or `global_tag_frozen`.
    All other errors are error responses, also in a dry run.
    """

    detail = serializers.CharField()
    dry_run = serializers.BooleanField()
    refused = Refusal(allow_null=True)
    revisions = serializers.DictField(child=serializers.IntegerField())
    unchanged = serializers.BooleanField()
    rows = PlanRow(many=True)


def insertion_document(insertion: Insertion, *, dry_run: bool) -> dict[str, Any]:
    """The `InsertionResult` of an insertion. `dry_run` must be the value with which the insertion was made."""
    cuts = [cut for placement in insertion.placements for cut in placement.cuts]
    changed = sum(bool(cut.rest) for cut in cuts)
    created = {payload_list.id for payload_list in insertion.created_lists}
    unchanged = sum(placement.holder is not None for placement in insertion.placements)
    summary = (
        f"payload IOVs inserted: {len(insertion.placements) - unchanged}; unchanged: {unchanged}; "
        f"existing IOVs shortened, moved or split: {changed}; "
        f"removed from their list: {len(cuts) - changed}."
    )
    return {
        "detail": f"Dry run, nothing was changed: {summary}" if dry_run else summary[0].upper() + summary[1:],
        "dry_run": dry_run,
        "refused": None,
        "revisions": insertion.revisions,
        "unchanged": bool(insertion.placements) and unchanged == len(insertion.placements),
        "rows": [_row(placement, placement.payload_list.id in created, dry_run) for placement in insertion.placements],
    }


def refusal_document(error: CdbError) -> dict[str, Any]:
    """The `InsertionResult` of a dry run whose request would be rejected."""
    return {
        "detail": "It would be refused.",
        "dry_run": True,
        "refused": {"code": error.code, "detail": str(error), "rows": error.rows},
        "revisions": {},
        "unchanged": False,
        "rows": [],
    }


def _row(placement: Placement, created: bool, dry_run: bool) -> dict[str, Any]:
    payload_list, holder = placement.payload_list, placement.holder
    iov, interval = (placement.iov, interval_of(placement.iov)) if holder is None else (holder.iov, holder.interval)
    return {
        "row": placement.number,
        "unchanged": holder is not None,
        "global_tag": payload_list.global_tag and payload_list.global_tag.name,
        "payload_type": payload_list.payload_type.name,
        "payload_list": None if created and dry_run else payload_list.name,
        "list_created": created,
        "added": {"id": iov.id, "payload_url": iov.payload_url}
        | interval_document(interval)
        | ({"until": "next"} if placement.since_only and holder is None else {}),
    } | cuts_document(placement.cuts)


def cuts_document(cuts: Sequence[Cut[TimelineRow[PayloadIOV]]]) -> dict[str, Any]:
    """The `CutsDocument` of cuts."""
    return {
        "trimmed": [_cut(cut) for cut in cuts if len(cut.rest) == 1 and cut.rest[0].start == cut.was.start],
        "moved": [_cut(cut) for cut in cuts if len(cut.rest) == 1 and cut.rest[0].start != cut.was.start],
        "split": [_cut(cut) for cut in cuts if len(cut.rest) == 2],
        "detached": [_cut(cut) for cut in cuts if not cut.rest],
    }


def _cut(cut: Cut[TimelineRow[PayloadIOV]]) -> dict[str, Any]:
    iov = cut.row.iov
    return {
        "id": iov.id,
        "payload_url": iov.payload_url,
        "before": interval_document(cut.was),
        "after": [interval_document(rest) for rest in cut.rest],
    }


def interval_document(interval: Interval) -> dict[str, Any]:
    """The `IntervalDocument` of an interval."""
    since, until = interval.on_wire(Mode(settings.CDB_IOV_MODE))
    return {"since": list(since), "until": "open" if interval.is_open else list(until)}
