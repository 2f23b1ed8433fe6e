"""The subscriptions to changes, for administrators."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.changes import notice_of
from cdb_rest.models import ChangeAction, GlobalTagChange, Subscription
from cdb_rest.notices.delivery import send
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import ANY
from cdb_rest.rules.errors import SubscriptionNotFoundError, existing, invalid_field, quoted
from cdb_rest.writes import subscriptions as service
from cdb_web.page import administers, form_page, require_administrator, store_or_show

CHANGES: dict[str, Callable[..., None]] = {"resume": service.resume, "delete": service.unsubscribe}


@form_page
def subscriptions(request: HttpRequest) -> HttpResponse:
    """The subscriptions with their states, and forms that create, test, resume and delete one.

    The secret of a new one is in the response to the form only, which nothing may store.
    """
    values: dict[str, Any] = {"form": {"url": "", "tags": ANY, "actions": []}, "actions": ChangeAction.values}

    def store() -> str | None:
        actor, action = require_administrator(request).name, request.POST.get("action")
        if action is None:
            form = {name: request.POST.get(name, "").strip() for name in ("url", "tags")}
            values["form"] = form | {"actions": request.POST.getlist("actions")}
            values["created"] = service.subscribe(actor=actor, **values["form"])
            return None
        number = parse_number("subscription", request.POST.get("subscription"))
        if action == "test":
            values["tested"] = subscription = _find(number)
            try:
                send(subscription, [], subscription.delivered, notice_of)
            except OSError as error:
                values["failure"] = str(error)
            return None
        if action not in CHANGES:
            raise invalid_field("action", f"action must be test, {' or '.join(CHANGES)} (got {quoted(action)})")
        CHANGES[action](actor=actor, number=number)
        return f"?done={action}&number={number}"

    if administers(principal_of(request.META)):
        if "delete" in request.GET:
            values["deleting"] = _find(parse_number("delete", request.GET["delete"]))
        # They are read after the form was stored.
        values["subscriptions"] = lambda: [(one, _lag(one)) for one in Subscription.objects.order_by("id")]
    response = store_or_show(request, "subscriptions.html", values, store)
    response["Cache-Control"] = "no-store"
    return response


def _find(number: int) -> Subscription:
    return existing(Subscription.objects.filter(id=number).first(), SubscriptionNotFoundError(number))


def _lag(subscription: Subscription) -> int:
    """The number of later changes, at most 1,000, of which the subscription may not want all."""
    later = GlobalTagChange.objects.filter(Q(position__gt=subscription.delivered) | Q(position=None))
    return later[:1000].count()
