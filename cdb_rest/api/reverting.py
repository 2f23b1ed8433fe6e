"""Reverting a global tag to an earlier revision, and undoing one of its changes."""

from dataclasses import replace
from functools import partial
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from cdb_rest.api.base.conversion import Shape, document_of
from cdb_rest.api.base.descriptions import in_path, request_example, response_example
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.writes import WriteInput, is_dry_run, respond_to_write
from cdb_rest.api.examples import REVERSION
from cdb_rest.parsing.fields import Input, NumberField, TextField, read_body
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.names import COMMENT_LENGTH
from cdb_rest.writes.reverting import Reversion, revert_global_tag
from cdb_rest.writes.undoing import undo_change


class TypeReversionDocument(Shape):
    """The change of a global tag by a reversion, for one payload type.

    `list_detached` and `list_attached` are the names of the lists that left the tag and came into it, or null.
    `list_created` says whether the attached list is new. In a dry run, a new list has no name yet.
    """

    payload_type = serializers.CharField()
    list_detached = serializers.CharField(source="detached", allow_null=True)
    list_attached = serializers.CharField(source="attached", allow_null=True)
    list_created = serializers.BooleanField(source="is_created")
    payload_iovs_removed = serializers.IntegerField(source="removed")
    payload_iovs_added = serializers.IntegerField(source="added")


class ReversionResult(Shape):
    """The response to a reversion or an undo: the changes for each payload type that differed.

    `revision` is the new revision of the tag. It is null in a dry run, and if nothing differed. `status` is the status that the
    tag gets by the undo of a change of status, otherwise null.
    """

    detail = serializers.CharField()
    dry_run = serializers.BooleanField()
    changed = serializers.BooleanField()
    revision = serializers.IntegerField(allow_null=True)
    status = serializers.CharField(allow_null=True)
    payload_types = TypeReversionDocument(many=True)


class RevertInput(Input):
    """The revision to which a global tag is reverted. With `dry_run`, nothing changes."""

    revision = NumberField()
    dry_run = serializers.BooleanField(default=False)
    comment = TextField(max_length=COMMENT_LENGTH, required=False, allow_blank=True)


REQUEST = {"revision": 1, "comment": "The new gains were wrong", "dry_run": True}


TAG = in_path("name", "Name of the global tag.", "tiny")


class GlobalTagRevertView(StrictView):
    """Give a global tag the payload lists and IOVs that it had at an earlier revision. This is one new change.

    The status of the tag stays as it is. What the tag did not have then is detached, not deleted. If the tag has the
    contents of then already, nothing changes. With `dry_run`, the changes are returned and nothing changes.

    The response is 409 if something would change and the tag is not unlocked, also in a dry run. It is 404 if the tag
    has no such revision, and 410 if the contents of that revision are no longer stored.
    """

    @extend_schema(
        summary="Revert a global tag to a revision",
        parameters=[TAG],
        request=RevertInput,
        responses=ReversionResult,
        examples=[request_example(REQUEST), response_example(REVERSION)],
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        revision = read_body(request, RevertInput)["revision"]
        service = partial(revert_global_tag, name=name, revision=revision)
        return respond_to_write(request, service, partial(_document, dry_run=is_dry_run(request)))


class ChangeUndoView(StrictView):
    """Undo one change of a global tag, and leave the later ones. This is one new change.

    Rows and payload lists that the change removed come back, and those that it added leave the tag. What later changes made
    valid stays. If nothing of the change is left, nothing changes. With `dry_run`, the changes are returned and nothing changes.

    The response is 409 with the code `undo_conflict` if later changes stand in the way, which it names, or if the change created
    or deleted the tag. The status of the tag decides as for an insertion, or as for a removal where a payload would not be
    valid any more.
    """

    @extend_schema(
        summary="Undo a change of a global tag",
        parameters=[TAG, in_path("revision", "Revision of the tag after the change.", 2)],
        request=WriteInput,
        responses=ReversionResult,
        examples=[
            request_example({"comment": "The new gains were wrong", "dry_run": True}),
            response_example(REVERSION),
        ],
    )
    def post(self, request: Request, name: str, revision: str) -> HttpResponse:
        if request.data:
            read_body(request, WriteInput)
        service = partial(undo_change, name=name, revision=parse_number("revision", revision))
        return respond_to_write(request, service, partial(_document, dry_run=is_dry_run(request)))


def _document(reversion: Reversion, *, dry_run: bool) -> dict[str, Any]:
    # The name of a new list is that of no list after a dry run.
    types = [replace(item, attached=None) if dry_run and item.is_created else item for item in reversion.types]
    summary = (
        f"payload lists attached: {sum(item.is_created or item.attached is not None for item in types)}, "
        f"of them new: {sum(item.is_created for item in types)}; "
        f"detached: {sum(item.detached is not None for item in types)}; "
        f"payload IOVs removed: {sum(item.removed for item in types)}; added: {sum(item.added for item in types)}."
    )
    return {
        "detail": f"Dry run, nothing was changed: {summary}" if dry_run else summary[0].upper() + summary[1:],
        "dry_run": dry_run,
        "changed": bool(types or reversion.status),
        "revision": None if dry_run else reversion.revision,
        "status": reversion.status,
        "payload_types": [document_of(TypeReversionDocument, item) for item in types],
    }
