"""Mail, by Django's backend: about changes, and about requests to those who may decide them and to those who made them."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from cdb_rest import named_sql
from cdb_rest.access import rules
from cdb_rest.models import ChangeRequest, GlobalTagChange, RequestState
from cdb_rest.notices.webhooks import DeliveryError
from cdb_rest.rules.access import Principal
from cdb_rest.writes.requests import may_decide

TRY_LOCK = named_sql.load("try_lock_mail")
# There is no mail about older requests: mail may have been switched on later.
OLDEST = timedelta(days=1)


def send(addresses: Sequence[str], subject: str, text: str) -> None:
    """Send a mail, in which the addresses are not shown. Raises `OSError`."""
    if not settings.CDB_MAIL:
        raise DeliveryError("Mail is off: CDB_MAIL_URL is not set.")
    EmailMessage(" ".join(f"[cdb] {subject}".split()), text, bcc=addresses).send()


def send_changes(address: str, changes: Iterable[GlobalTagChange]) -> None:
    """Send a mail with a line for each change, or a test without changes. Raises `OSError`."""
    lines = [f"{change}, by {change.actor or 'the system'}. {change.comment}".strip() for change in changes]
    names = {change.global_tag for change in changes}
    what = f"{', '.join(names)} has changed" if len(names) == 1 else f"{len(names)} global tags have changed"
    send([address], what if names else "Test", "\n".join([*lines, "", f"{settings.CDB_PUBLIC_URL}/log", ""]))


def send_about_requests() -> None:
    """Send mail about each new request, and about each one that was decided, at least once, and mark them.

    Only one process does so at a time. Raises `OSError` and `django.db.Error`; then the others are sent with the next call.
    """
    is_left = settings.CDB_MAIL
    while is_left:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(TRY_LOCK)
            [(is_ours,)] = cursor.fetchall()
            # In random order, so that one to a wrong address does not keep the others.
            request = ChangeRequest.objects.exclude(mailed=F("state")).order_by("?").first() if is_ours else None
            is_left = request is not None
            if request is not None:
                if (request.decided or request.created) > timezone.now() - OLDEST:
                    _send_about(request)
                ChangeRequest.objects.filter(id=request.id).update(mailed=request.state)


def _send_about(request: ChangeRequest) -> None:
    users = User.objects.filter(is_active=True).exclude(email="").prefetch_related("groups")
    if request.state == RequestState.OPEN:
        text = f"{request.requester} asks for this change: {request.reason}"
        addresses = [user.email for user in users.exclude(username=request.requester) if _may_decide(user, request)]
    else:
        text = f"It was {request.state} by {request.decided_by}. {request.answer}".strip()
        found = users.filter(username=request.requester).exclude(username=request.decided_by)
        addresses = [user.email for user in found]
    if addresses:
        subject = f"Request {request.id} ({request.kind}, {request.global_tag}) is {request.state}"
        send(addresses, subject, f"{text}\n\n{settings.CDB_PUBLIC_URL}/requests/{request.id}\n")


def _may_decide(user: User, request: ChangeRequest) -> bool:
    permissions = rules.current().of_user(user.username, [group.name for group in user.groups.all()])
    principal = Principal(user.username, "session", permissions, may_everything=user.is_superuser)
    return may_decide(request, principal)
