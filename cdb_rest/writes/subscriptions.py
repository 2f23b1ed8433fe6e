"""Write services for subscriptions. Every change is recorded as an `AccessChange`.

The services do not check permissions: the caller must ensure that the actor is an administrator.
"""

import base64
import re
import secrets
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from cdb_rest.models import AccessChange, ChangeAction, Subscription
from cdb_rest.rules.access import check_pattern
from cdb_rest.rules.errors import SubscriptionNotFoundError, existing, invalid_field, quoted
from cdb_rest.rules.names import COMMENT_LENGTH, TEXT_LENGTH
from cdb_rest.writes.positions import number_changes
from cdb_rest.writes.transactions import write

WEB = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?([/?][!-~]*)?", re.ASCII)
SECRET_BYTES = 32


@write
def subscribe(*, actor: str, url: str, tags: str, actions: Sequence[str]) -> Subscription:
    """Add a subscription for the changes from now on, with a new secret. Raises `InvalidInputError`."""
    _check_url(url)
    if not tags or len(tags) > TEXT_LENGTH:
        raise invalid_field("tags", f"tags must have from 1 to {TEXT_LENGTH} characters (got {len(tags)})")
    check_pattern("tags", tags)
    if unknown := [action for action in actions if action not in ChangeAction.values]:
        raise invalid_field("actions", f"actions has {quoted(unknown[0])}, which is no kind of change")
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    values = {"url": url, "tags": tags, "actions": list(actions), "creator": actor}
    subscription = Subscription.objects.create(**values, secret=secret, delivered=number_changes())
    _record(actor, "subscribe", subscription)
    return subscription


@write
def resume(*, actor: str, number: int) -> None:
    """Send the changes of a stopped or failing subscription again at once. Raises `SubscriptionNotFoundError`."""
    subscription = _lock(number)
    subscription.stopped, subscription.failing_since = None, None
    subscription.failures, subscription.next_attempt = 0, timezone.now()
    subscription.save()
    _record(actor, "resume_subscription", subscription)


@write
def unsubscribe(*, actor: str, number: int) -> None:
    """Delete a subscription. Raises `SubscriptionNotFoundError`."""
    subscription = _lock(number)
    _record(actor, "unsubscribe", subscription)
    subscription.delete()


def _lock(number: int) -> Subscription:
    return existing(
        Subscription.objects.select_for_update().filter(id=number).first(), SubscriptionNotFoundError(number)
    )


def _check_url(url: str) -> None:
    try:
        if url.startswith("mailto:"):
            validate_email(url.removeprefix("mailto:"))
        elif not WEB.fullmatch(url) or urlsplit(url).port == 0 or len(url) > COMMENT_LENGTH:
            raise ValueError
    except (ValueError, ValidationError) as error:
        expected = "https://host/path, http://host/path or mailto:name@host, in ASCII and without a password"
        raise invalid_field("url", f"url must be {expected}, of at most {COMMENT_LENGTH} characters") from error


def _record(actor: str, action: str, subscription: Subscription) -> None:
    # The path of a receiver's address may be a secret.
    url = "/".join(subscription.url.split("/")[:3]).partition("?")[0]
    detail = {"id": subscription.id, "url": url, "tags": subscription.tags, "actions": subscription.actions}
    AccessChange.objects.create(actor=actor, action=action, detail=detail)
