"""Requests: proposed writes, which a client with the permission for them accepts or rejects."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cdb_rest.api.base.conversion import Document, Shape, document, document_of, documents
from cdb_rest.api.base.descriptions import in_path, request_example
from cdb_rest.api.base.paging import Browser
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.writes import WriteInput, is_dry_run, respond_to_write
from cdb_rest.api.changes import ChangeItem
from cdb_rest.api.clearing import IntervalInput
from cdb_rest.api.imports import ImportDocument, import_document
from cdb_rest.api.plans import IntervalDocument
from cdb_rest.models import ChangeAction, ChangeRequest, GlobalTagChange, RequestComment, RequestKind
from cdb_rest.parsing.fields import Input, NumberField, TextField, read_body, read_value
from cdb_rest.parsing.iov_files import Options, read_iov_rows
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import RequestNotFoundError, existing
from cdb_rest.rules.iov_rows import IOVRow
from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH
from cdb_rest.writes.clearing import clear_interval
from cdb_rest.writes.global_tags import change_status, clone_global_tag
from cdb_rest.writes.imports import ImportOptions, ImportResult, import_payload_iovs
from cdb_rest.writes.requests import (
    Acceptance,
    Proposal,
    accept_request,
    comment_request,
    make_request,
    reject_request,
    withdraw_request,
)
from cdb_rest.writes.undoing import undo_change

MAX_CHANGES = 100


class ProposedInput(Input):
    """The base class of the documents of proposed writes. They are stored, so they have no other members."""

    also_known = ()


class RowsInput(ProposedInput):
    """The rows of an import, as in the JSON array of a file; and whether an end "open" removes later IOVs."""

    rows = serializers.ListField(allow_empty=False)
    open_hides_later = serializers.BooleanField(default=False)


class StatusInput(ProposedInput):
    """The new status of the tag."""

    status = TextField(max_length=NAME_LENGTH)


class SourceInput(ProposedInput):
    """The global tag that is cloned."""

    clone_of = TextField(max_length=NAME_LENGTH)


class RevisionInput(ProposedInput):
    """The revision of the change that is undone."""

    revision = NumberField()


class ClearedInput(ProposedInput, IntervalInput):
    """The interval that is cleared."""


FORMS: dict[RequestKind, type[Input]] = {
    RequestKind.IMPORT: RowsInput,
    RequestKind.CLEAR: ClearedInput,
    RequestKind.STATUS: StatusInput,
    RequestKind.CLONE: SourceInput,
    RequestKind.UNDO: RevisionInput,
}


def read_proposal(kind: RequestKind, global_tag: str, document: Any) -> Proposal:
    """The write that a document of a kind describes. Raises `InvalidInputError`, and the errors of `read_iov_rows`."""
    values = read_value(document, FORMS[kind], strict=True)
    changes_contents = kind not in (RequestKind.STATUS, RequestKind.CLONE)
    if kind == RequestKind.IMPORT:
        # Read at once, so that invalid rows are refused before anything is locked.
        rows = rows_of(values["rows"])
        options = ImportOptions(hides_later=values["open_hides_later"])

        def insert(origin: Origin, confirmed: bool) -> ImportResult:
            return import_payload_iovs(
                read=lambda: rows, global_tag=global_tag, options=options, confirmed=confirmed, origin=origin
            )

        return Proposal(kind, global_tag, insert, changes_contents)
    services: dict[RequestKind, Callable[..., object]] = {
        RequestKind.CLEAR: partial(clear_interval, global_tag=global_tag),
        RequestKind.STATUS: partial(change_status, name=global_tag),
        RequestKind.CLONE: partial(clone_global_tag, target=global_tag),
        RequestKind.UNDO: partial(undo_change, name=global_tag),
    }
    if kind == RequestKind.UNDO:
        of_status = GlobalTagChange.objects.filter(global_tag=global_tag, action=ChangeAction.STATUS, **values)
        changes_contents = not of_status.exists()
    elif kind == RequestKind.CLONE:
        values = {"source": values["clone_of"]}
    return Proposal(kind, global_tag, lambda origin, _: services[kind](**values, origin=origin), changes_contents)


def rows_of(documents: list[Any]) -> list[IOVRow]:
    """The rows that the elements of a JSON array describe. Raises the errors of `read_iov_rows`."""
    return list(read_iov_rows(io.BytesIO(orjson.dumps(documents)), Options(max_rows=settings.CDB_MAX_BULK_ROWS)))


def proposal_of(request: ChangeRequest) -> Proposal:
    """The write that a stored request proposes. Raises the errors of `read_proposal`."""
    return read_proposal(RequestKind(request.kind), request.global_tag, request.document)


class ChangeRequestInput(Input):
    """A request. `document` is what the route of the write takes, by kind:

    - `import`: `{"rows": [...], "open_hides_later": false}`, with rows as in the JSON array of an import
    - `clear`: `{"payload_type", "since", "until"}`
    - `status`: `{"status"}`
    - `clone`: `{"clone_of"}`, the source; `global_tag` is the name of the new tag
    - `undo`: `{"revision"}`
    """

    global_tag = TextField(max_length=NAME_LENGTH)
    kind = serializers.ChoiceField(RequestKind.choices)
    document = serializers.DictField()
    reason = TextField(max_length=COMMENT_LENGTH)


class AcceptInput(WriteInput):
    """The answer to the requester, and whether removals of IOVs and new gaps are confirmed."""

    confirm = serializers.BooleanField(default=False)


class CommentInput(Input):
    """A comment in the discussion of a request."""

    text = TextField(max_length=COMMENT_LENGTH)


class EffectDocument(IntervalDocument):
    """How many differences a payload type would have, and the interval from the first to the last one."""

    payload_type = serializers.CharField()
    differences = serializers.IntegerField()


@extend_schema_field(EffectDocument(many=True))
class Effects(serializers.JSONField):
    """An array that is stored as such."""


class ChangeRequestItem(Shape):
    """A request in a list. `effect` is what it would have changed when it was made, and `revision` that of the tag then.

    `state` is `open`, `accepted`, `rejected` or `withdrawn`. `answer` is the comment of who decided it. `result_revision` is the
    revision that the acceptance made, null if nothing was left to change.
    """

    number = serializers.IntegerField(source="id")
    kind = serializers.CharField()
    global_tag = serializers.CharField()
    revision = serializers.IntegerField()
    effect = Effects()
    reason = serializers.CharField()
    requester = serializers.CharField()
    created = serializers.DateTimeField()
    state = serializers.CharField()
    decided = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField()
    answer = serializers.CharField()
    result_revision = serializers.IntegerField(allow_null=True)


class CommentDocument(Shape):
    """A comment in the discussion of a request."""

    created = serializers.DateTimeField()
    actor = serializers.CharField()
    text = serializers.CharField()


class ChangeRequestDocument(ChangeRequestItem):
    """A request with the proposed write, the discussion, and the first changes of the tag since the request was made."""

    document = serializers.JSONField()
    comments = CommentDocument(many=True)
    changes_since = ChangeItem(many=True)


class AcceptanceDocument(ChangeRequestItem):
    """An accepted request. `result` is the response to the import, null for other kinds."""

    result = ImportDocument(allow_null=True)


REQUESTS = Browser(
    shape=ChangeRequestItem,
    rows=ChangeRequest.objects.all,
    search=("reason",),
    sort={"number": "id"},
    filters={"state": "state", "global_tag": "global_tag", "requester": "requester", "kind": "kind"},
    newest_first=True,
)
NUMBER = in_path("number", "Number of the request.", 1)
EXAMPLE = {
    "global_tag": "tiny",
    "kind": "import",
    "document": {"rows": [{"payload_type": "Pixel_Alignment", "payload_url": "new.root", "since": [5, 0]}]},
    "reason": "The survey of May",
}


class ChangeRequestListView(StrictView):
    """The requests for changes, newest first, page by page."""

    query = REQUESTS.parameters()
    takes_rows = True

    @extend_schema(summary="List requests", responses=REQUESTS.page_shape())
    def get(self, request: Request) -> Response:
        return Response(REQUESTS.page(request.query_params))

    @extend_schema(
        summary="Make a request",
        request=ChangeRequestInput,
        responses=ChangeRequestItem,
        examples=[request_example(EXAMPLE)],
    )
    def post(self, request: Request) -> HttpResponse:
        """Propose a write to a tag. Every client with a token or a login may, and needs no role.

        The write is tried, as if it were accepted now, and its errors are those of its own route. With `dry_run`, nothing is
        stored.
        """
        values = read_body(request, ChangeRequestInput)
        proposal = read_proposal(RequestKind(values.pop("kind")), values.pop("global_tag"), values["document"])
        return respond_to_write(request, partial(make_request, proposal=proposal, **values), ChangeRequestItem)


class ChangeRequestView(StrictView):
    """One request."""

    @extend_schema(summary="Get a request", parameters=[NUMBER], responses=ChangeRequestDocument)
    def get(self, request: Request, number: str) -> Response:
        wanted = parse_number("number", number)
        rows = ChangeRequest.objects.filter(id=wanted)
        found = existing(document(ChangeRequestDocument, rows), RequestNotFoundError(wanted))
        changes = GlobalTagChange.objects.filter(global_tag=found["global_tag"], revision__gt=found["revision"])
        if found["kind"] == RequestKind.CLONE:
            changes = changes.none()
        return Response(
            found
            | {
                "comments": documents(CommentDocument, RequestComment.objects.filter(request__in=rows).order_by("id")),
                "changes_since": documents(ChangeItem, changes.order_by("revision")[:MAX_CHANGES]),
            }
        )


class ChangeRequestAcceptView(StrictView):
    """Accept an open request: make the proposed write, exactly once, with the permissions of the client.

    The write is made in the present state of the tag. The change log names the client as the actor, and the requester. If the
    write fails, the request stays open. A locked tag must have `accepts_requests`, unless the write is permitted on it.
    """

    @extend_schema(
        summary="Accept a request",
        parameters=[NUMBER],
        request=AcceptInput,
        responses=AcceptanceDocument,
    )
    def post(self, request: Request, number: str) -> HttpResponse:
        values = read_body(request, AcceptInput) if request.data else {}
        wanted, dry_run = parse_number("number", number), is_dry_run(request)
        confirmed = dry_run or values.get("confirm", False)

        def document(found: Acceptance) -> Document:
            result = found.result
            imported = import_document(result, dry_run=dry_run) if isinstance(result, ImportResult) else None
            return document_of(ChangeRequestItem, found.request) | {"result": imported}

        service = partial(accept_request, number=wanted, read=proposal_of, confirmed=confirmed)
        return respond_to_write(request, service, document)


class ChangeRequestRejectView(StrictView):
    """Reject an open request. The comment is the reason, and is required. It needs the role for an insertion into the tag."""

    @extend_schema(
        summary="Reject a request",
        parameters=[NUMBER],
        request=WriteInput,
        responses=ChangeRequestItem,
        examples=[request_example({"comment": "The survey is of another detector"})],
    )
    def post(self, request: Request, number: str) -> HttpResponse:
        return _decide(request, number, reject_request)


class ChangeRequestWithdrawView(StrictView):
    """Withdraw an open request of one's own."""

    @extend_schema(
        summary="Withdraw a request",
        parameters=[NUMBER],
        request=WriteInput,
        responses=ChangeRequestItem,
    )
    def post(self, request: Request, number: str) -> HttpResponse:
        return _decide(request, number, withdraw_request)


def _decide(request: Request, number: str, service: Callable[..., ChangeRequest]) -> HttpResponse:
    if request.data:
        read_body(request, WriteInput)
    return respond_to_write(request, partial(service, number=parse_number("number", number)), ChangeRequestItem)


class ChangeRequestCommentView(StrictView):
    """Add a comment to the discussion of a request, in any state. Every client with a token or a login may."""

    @extend_schema(
        summary="Comment on a request",
        parameters=[NUMBER],
        request=CommentInput,
        responses=CommentDocument,
        examples=[request_example({"text": "Which runs is this for?"})],
    )
    def post(self, request: Request, number: str) -> HttpResponse:
        text = read_body(request, CommentInput)["text"]
        service = partial(comment_request, number=parse_number("number", number), text=text)
        return respond_to_write(request, service, CommentDocument)
