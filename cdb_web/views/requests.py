"""Change requests: their list, and the page of one, where it is discussed and decided."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from cdb_rest.access.authentication import principal_of
from cdb_rest.analysis.difference import Comparison
from cdb_rest.api.clearing import IntervalInput
from cdb_rest.api.proposals import proposal_of, rows_of
from cdb_rest.api.requests import REQUESTS
from cdb_rest.models import ChangeRequest, GlobalTag, GlobalTagChange, RequestKind, RequestState
from cdb_rest.parsing.fields import read_value
from cdb_rest.rules.access import Origin, Role
from cdb_rest.rules.errors import (
    AuthenticationRequiredError,
    CdbError,
    NotPermittedError,
    OverlapError,
    RequestNotFoundError,
    TagLockedError,
    existing,
)
from cdb_rest.writes.effects import SHOWN
from cdb_rest.writes.requests import (
    accept_request,
    check_same,
    comment_request,
    effect_document,
    may_decide,
    reject_request,
    withdraw_request,
)
from cdb_rest.writes.transactions import write as write_service
from cdb_web import inputs
from cdb_web.page import form_page, is_known, may, page, show, store_or_show
from cdb_web.views.insert import effect_values
from cdb_web.writes import Steps, WriteService, as_previewed, check_confirmed, origin_of, preview_and_store

PAGE_SIZE = 50
MAX_CHANGES = 100
SERVICES: dict[str | None, Callable[..., object]] = {
    "comment": comment_request,
    "reject": reject_request,
    "withdraw": withdraw_request,
}


@page
def requests(request: HttpRequest) -> HttpResponse:
    """The open requests, newest first, page by page; or those in another state, for one tag, or of the reader."""
    state, tag = request.GET.get("state", RequestState.OPEN), inputs.text(request.GET, "tag")
    requester = principal_of(request.META).identity if "mine" in request.GET and is_known(request) else ""
    chosen = {"state": state if state in RequestState.values else "", "global_tag": tag, "requester": requester}
    found = REQUESTS.select(chosen, ChangeRequest.objects.order_by("-id").defer("document", "effect"))
    values = {
        "page": Paginator(found, PAGE_SIZE).get_page(request.GET.get("page")),
        "states": RequestState.values,
        "state": state,
        "tag": tag,
        "requester": requester,
    }
    return show(request, "requests.html", values)


@form_page
def change_request(request: HttpRequest, number: int) -> HttpResponse:
    """A request: what it would change, its discussion, and the forms that accept, reject, withdraw or discuss it.

    The first POST previews it against the present state of the tag; then it can be accepted. The forms that do something else
    have the field `action`.
    """
    item = existing(ChangeRequest.objects.filter(id=number).first(), RequestNotFoundError(number))
    action = request.POST.get("action")
    if request.method == "POST" and item.state != RequestState.OPEN and action != "comment":
        # The page says who decided.
        return HttpResponseRedirect(request.path, status=303)
    values = _values(request, item)

    def store() -> str:
        origin = origin_of(request)
        text = {"text": origin.comment} if action == "comment" else {}
        SERVICES[action](number=number, origin=origin, **text)
        return reverse("web:request", args=[number])

    if action in SERVICES or request.method != "POST":
        return store_or_show(request, "request.html", values, store)
    if not values["may_preview"]:
        principal_of(request.META).require_known()
    response = _decide(request, item, values)
    if request.headers.get("HX-Request") == "true":
        # htmx shows no errors, but the part of the page says why the request cannot be applied.
        response.status_code = 200
    return response


def _values(request: HttpRequest, item: ChangeRequest) -> dict[str, Any]:
    principal = principal_of(request.META)
    # A clone changes nothing in the tag that is cloned, but what the clone would have depends on it.
    name = item.document["clone_of"] if item.kind == RequestKind.CLONE else item.global_tag
    since = Q(created__gt=item.created) if item.tag_id is None else Q(revision__gt=item.revision)
    changes = GlobalTagChange.objects.filter(since, global_tag=name).order_by("revision")
    values: dict[str, Any] = {
        "item": item,
        "comments": item.comments.order_by("id"),
        "name": name,
        "tag": GlobalTag.objects.select_related("status").filter(name=name).first(),
        "is_mine": is_known(request) and principal.identity == item.requester,
        "may_preview": is_known(request) or may(request, Role.CONTRIBUTOR, name),
        "may_reject": may_decide(item, principal),
        "changes": changes[:MAX_CHANGES] if item.state == RequestState.OPEN else [],
    }
    # Settings may refuse now what they accepted then.
    with suppress(CdbError):
        if item.kind == RequestKind.IMPORT:
            values |= {"kind": "file", "rows": item.document["rows"], "max_shown": SHOWN}
            values["shown"] = [(row, []) for row in rows_of(item.document["rows"][:SHOWN])]
        elif item.kind == RequestKind.CLEAR:
            values["interval"] = read_value(item.document, IntervalInput)["interval"]
    return values


def _decide(request: HttpRequest, item: ChangeRequest, values: dict[str, Any]) -> HttpResponse:
    """The page with the preview, or the acceptance after it."""
    name, tag = values["name"], values["tag"]

    def write() -> tuple[str, WriteService | Steps]:
        check_same(item, tag)
        proposal = proposal_of(item)
        if item.kind == RequestKind.IMPORT:
            values["rows"] = rows_of(item.document["rows"])

        def attempt(origin: Origin) -> object:
            opens = tag is not None and tag.accepts_requests
            try:
                with transaction.atomic():
                    return proposal.apply(origin, opens=opens)
            except (AuthenticationRequiredError, NotPermittedError, OverlapError, TagLockedError) as error:
                values["refusal"] = str(error)
            return proposal.apply()

        @write_service
        def accept(*, origin: Origin, confirmed: bool = False) -> str:
            # The request is locked before the tag, as by `accept_request`.
            ChangeRequest.objects.select_for_update().get(id=item.id)

            def make() -> object:
                return accept_request(number=item.id, read=proposal_of, confirmed=confirmed, origin=origin)

            as_previewed(request, name, make)
            return reverse("web:request", args=[item.id])

        return name, Steps(attempt, accept)

    def check() -> dict[str, Any]:
        if item.kind == RequestKind.STATUS:
            return check_confirmed(request, name)
        return {"confirmed": request.POST.get("confirm") == "1"}

    def inspect(found: Any, comparison: Comparison) -> dict[str, Any]:
        values["differs"] = effect_document(comparison) != item.effect
        if item.kind in (RequestKind.IMPORT, RequestKind.CLEAR):
            return effect_values(found, comparison, values.get("rows", []))
        return {"plan": found}

    return preview_and_store(request, "request.html", values, write, check=check, inspect=inspect)
