"""Requests: proposed writes, which a client with the permission for them accepts or rejects."""

from collections.abc import Callable
from functools import partial

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
from cdb_rest.api.imports import ImportDocument, import_document
from cdb_rest.api.plans import IntervalDocument
from cdb_rest.api.proposals import proposal_of, read_proposal
from cdb_rest.models import ChangeRequest, GlobalTagChange, RequestComment, RequestKind
from cdb_rest.parsing.fields import Input, TextField, read_body
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.errors import RequestNotFoundError, existing
from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH
from cdb_rest.writes.imports import ImportResult
from cdb_rest.writes.requests import (
    Acceptance,
    accept_request,
    comment_request,
    make_request,
    reject_request,
    withdraw_request,
)

MAX_CHANGES = 100


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
