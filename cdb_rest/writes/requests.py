"""Requests: proposed writes, which are stored, discussed, and accepted, rejected or withdrawn later."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from cdb_rest import named_sql
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, spans, summary_of
from cdb_rest.history.changes import newest_revision
from cdb_rest.models import (
    ChangeRequest,
    GlobalTag,
    GlobalTagChange,
    GlobalTagStatus,
    RequestComment,
    RequestKind,
    RequestState,
)
from cdb_rest.rules.access import BY_THE_SYSTEM, All, Origin, Principal
from cdb_rest.rules.errors import (
    AuthenticationRequiredError,
    NotPermittedError,
    OverlapError,
    RequestClosedError,
    RequestNotFoundError,
    TagChangedError,
    TagLockedError,
    TooManyOpenRequestsError,
    invalid_field,
)
from cdb_rest.rules.moment import Mode
from cdb_rest.rules.status import Action, Status, is_protected, role_for
from cdb_rest.writes.locks import lock_global_tag
from cdb_rest.writes.previews import preview
from cdb_rest.writes.transactions import roll_back, write

LOCK_REQUESTER = named_sql.load("lock_requester")
# The actions of managers: they have the same role for a clone and for a change of the status.
OF_MANAGERS = (RequestKind.CLONE, RequestKind.STATUS)
MAX_COMMENTS = 100


@dataclass(frozen=True)
class Proposal:
    """The write that a request proposes. `service` makes it; the flag says whether removals and gaps are confirmed.

    `changes_contents` says whether it changes what is valid in an existing tag, so that a locked one has to be unlocked for it.
    """

    kind: RequestKind
    global_tag: str
    service: Callable[[Origin, bool], object]
    changes_contents: bool

    def apply(self, origin: Origin = BY_THE_SYSTEM, *, confirmed: bool = True, opens: bool = True) -> object:
        """Make the write, in a transaction, and return the result of the service.

        With `opens`, a locked tag is unlocked for this write only, inside of the transaction: no other one can see that, and the
        change log has the status that the tag keeps. Then the origin must have the role manager for all payload types. Raises
        the errors of the service.
        """
        if not self.changes_contents:
            return self.service(origin, confirmed)
        tag = lock_global_tag(self.global_tag)
        if not opens or tag.status.name in (Status.UNLOCKED, Status.FROZEN):
            return self.service(origin, confirmed)
        origin.principal.require(role_for(Action.ADD_IOV, tag.status.name), tag.name, All.ALL)
        stored = GlobalTag.objects.filter(id=tag.id)
        made = GlobalTagChange.objects.filter(global_tag=tag.name, revision__gt=tag.revision)
        with transaction.atomic():
            stored.update(status=GlobalTagStatus.objects.get(name=Status.UNLOCKED))
            result = self.service(origin, confirmed)
            stored.update(status=tag.status)
            if not made.update(status=tag.status.name):
                # Even the row of the tag stays the same, and with it the validators of caches.
                transaction.set_rollback(True)
        return result


@dataclass(frozen=True)
class Acceptance:
    """An accepted request, with the result of the service that made the write."""

    request: ChangeRequest
    result: object


@write
def make_request(*, proposal: Proposal, document: dict[str, Any], reason: str, origin: Origin) -> ChangeRequest:
    """Store a request for a write, which `document` describes.

    The write is made and rolled back first, as if a manager accepted the request now and the tag did not have to be unlocked.
    The requests of one person are made one after the other, because the tag is locked meanwhile.

    Raises the errors of that, `AuthenticationRequiredError` for an unknown client, `InvalidInputError` without a reason, and
    `TooManyOpenRequestsError`.
    """
    requester = origin.principal.require_known()
    if not reason.strip():
        raise invalid_field("reason", "A reason is required.")
    lock_requester(requester)
    count = ChangeRequest.objects.filter(requester=requester, state=RequestState.OPEN).count()
    if count >= settings.CDB_MAX_OPEN_REQUESTS:
        raise TooManyOpenRequestsError(
            f"{requester} has {count} open requests, and at most {settings.CDB_MAX_OPEN_REQUESTS} are allowed "
            "(CDB_MAX_OPEN_REQUESTS); withdraw one, or wait until one is decided."
        )
    tag = None if proposal.kind == RequestKind.CLONE else GlobalTag.objects.filter(name=proposal.global_tag).first()
    request = ChangeRequest.objects.create(
        kind=proposal.kind,
        global_tag=proposal.global_tag,
        tag_id=tag.id if tag else None,
        revision=tag.revision if tag else 0,
        document=document,
        effect=_effect_of(proposal),
        reason=reason,
        requester=requester,
    )
    # The time is that of the database.
    request.refresh_from_db(fields=["created"])
    return request


def lock_requester(name: str) -> None:
    """Let one transaction at a time make or preview requests of a person, until it ends."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK_REQUESTER, {"requester": name})


def _effect_of(proposal: Proposal) -> list[dict[str, Any]]:
    """What the write would change now, by payload type; nothing for a clone and for another status."""
    if not proposal.changes_contents:
        roll_back(proposal.apply)
        return []
    return preview(proposal.global_tag, proposal.apply, lambda _, comparison: effect_document(comparison))


def effect_document(comparison: Comparison) -> list[dict[str, Any]]:
    """The number of differences of each payload type that differs, and the interval from the first to the last one."""
    found: list[dict[str, Any]] = []
    for item in (summary_of(item) for item in spans(comparison, each_pair=True) if len(item.since.majors)):
        interval = interval_between(item.first[0], item.last[1])
        since, until = interval.on_wire(Mode(settings.CDB_IOV_MODE))
        found.append(
            {
                "payload_type": item.payload_type,
                "differences": item.differences,
                "since": list(since),
                "until": "open" if interval.is_open else list(until),
            }
        )
    return found


@write
def accept_request(
    *,
    number: int,
    read: Callable[[ChangeRequest], Proposal],
    confirmed: bool = False,
    origin: Origin,
) -> Acceptance:
    """Make the write of an open request, once, with the permissions of the origin. Its comment is the answer.

    `read` returns the proposal. A tag that is locked must have `accepts_requests`, unless the write is permitted on a locked tag.
    The change log has the origin as actor, the reason of the request as comment, and the requester.

    Raises `RequestNotFoundError`, `RequestClosedError`, `TagChangedError` if another tag has the name now, and the errors of the
    write: then the request stays open.
    """
    request = _lock_open(number)
    proposal = read(request)
    accepts, advice = False, ""
    if request.tag_id is not None:
        tag = lock_global_tag(request.global_tag)
        check_same(request, tag)
        accepts = tag.accepts_requests
        if is_protected(tag.status.name) and not accepts:
            advice = " Unlock the tag first, or let requests change it (its limit accepts_requests)."
    before = newest_revision(request.global_tag)
    by = replace(origin, comment=request.reason, request=request.id, requested_by=request.requester)
    try:
        result = proposal.apply(by, confirmed=confirmed, opens=accepts)
    except (OverlapError, TagLockedError) as error:
        error.args = (f"{error}{advice}",)
        raise
    after = newest_revision(request.global_tag)
    _close(request, RequestState.ACCEPTED, origin, after if after != before else None)
    return Acceptance(request, result)


def check_same(request: ChangeRequest, tag: GlobalTag | None) -> None:
    """Raise `TagChangedError` if the tag was made after a request for an earlier one of its name."""
    if tag is not None and request.tag_id not in (None, tag.id):
        raise TagChangedError(
            f"Request {request.id} is for an earlier global tag {tag.name}, which was deleted; this one was made later."
        )


@write
def reject_request(*, number: int, origin: Origin) -> ChangeRequest:
    """Reject an open request; the comment of the origin, which is required, says why.

    Raises `RequestNotFoundError`, `RequestClosedError`, `InvalidInputError`, or the errors of missing permissions.
    """
    request = _lock_open(number)
    require_decider(request, origin.principal)
    if not origin.comment.strip():
        raise invalid_field("comment", "A reason is required.")
    return _close(request, RequestState.REJECTED, origin)


@write
def withdraw_request(*, number: int, origin: Origin) -> ChangeRequest:
    """Withdraw an open request of one's own. Raises `RequestNotFoundError`, `RequestClosedError` or `NotPermittedError`."""
    request = _lock_open(number)
    if origin.principal.require_known() != request.requester:
        raise NotPermittedError(f"Only {request.requester}, who made request {number}, can withdraw it.")
    return _close(request, RequestState.WITHDRAWN, origin)


@write
def comment_request(*, number: int, text: str, origin: Origin) -> RequestComment:
    """Add a comment to the discussion of a request. Every known client may, also after the decision.

    Raises `RequestNotFoundError`, `AuthenticationRequiredError`, or `InvalidInputError` for an empty text, or for more comments
    than `MAX_COMMENTS`.
    """
    actor = origin.principal.require_known()
    request = _lock(number)
    if not text.strip():
        raise invalid_field("text", "The comment is empty.")
    if request.comments.count() >= MAX_COMMENTS:
        raise invalid_field("text", f"A request has at most {MAX_COMMENTS} comments.")
    comment = RequestComment.objects.create(request=request, actor=actor, text=text)
    # The time is that of the database.
    comment.refresh_from_db(fields=["created"])
    return comment


def require_decider(request: ChangeRequest, principal: Principal) -> None:
    """Raise an error unless the principal may reject the request: it may insert its payload types into the tag, or manages it.

    To accept it, a principal needs the permissions of the write itself. Raises `NotPermittedError` or
    `AuthenticationRequiredError`.
    """
    tag = GlobalTag.objects.select_related("status").filter(name=request.global_tag).first()
    is_of_contributors = tag is not None and request.kind not in OF_MANAGERS
    status = tag.status.name if tag is not None and is_of_contributors else Status.LOCKED
    for payload_type in [item["payload_type"] for item in request.effect] or [None]:
        principal.require(role_for(Action.ADD_IOV, status), request.global_tag, payload_type)


def may_decide(request: ChangeRequest, principal: Principal) -> bool:
    """Whether `require_decider` raises no error."""
    try:
        require_decider(request, principal)
    except (AuthenticationRequiredError, NotPermittedError):
        return False
    return True


def _lock(number: int) -> ChangeRequest:
    # The document may have megabytes, which only an acceptance needs.
    request = ChangeRequest.objects.filter(id=number).defer("document").select_for_update().first()
    if request is None:
        raise RequestNotFoundError(number)
    return request


def _lock_open(number: int) -> ChangeRequest:
    request = _lock(number)
    if request.state != RequestState.OPEN:
        raise RequestClosedError(
            f"Request {number} was {request.state} by {request.decided_by} at {request.decided:%Y-%m-%d %H:%M:%S} UTC."
        )
    return request


def _close(
    request: ChangeRequest, state: RequestState, origin: Origin, result_revision: int | None = None
) -> ChangeRequest:
    request.state, request.decided, request.decided_by = state, timezone.now(), origin.actor
    request.answer, request.result_revision = origin.comment, result_revision
    request.save(update_fields=["state", "decided", "decided_by", "answer", "result_revision"])
    return request
