"""The delivery of changes to subscriptions.

The change log with its positions says what is to be sent, and `Subscription.delivered` what was received. So nothing is lost if a
process ends at any moment, and several hosts share the work.
"""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

from django.db import DatabaseError, connection, connections
from django.db.models.functions import Now
from django.utils import timezone

from cdb_rest import named_sql
from cdb_rest.history.feed import page_after
from cdb_rest.models import GlobalTagChange, Subscription
from cdb_rest.notices import mail, webhooks
from cdb_rest.observe import metrics
from cdb_rest.rules.access import matches
from cdb_rest.rules.errors import CdbError
from cdb_rest.writes.positions import number_changes

logger = logging.getLogger(__name__)
CLAIM = named_sql.load("claim_subscriptions")
INTERVAL_SECONDS, PAUSE_SECONDS = 1, 10
# Subscriptions that a process serves at a time, and writes in one delivery.
WORKERS, MOST_WRITES = 8, 100
# Longer than a delivery takes. If the process is killed, another one continues after this time.
LEASE = timedelta(seconds=30)
# After a mail, the next one has all changes of this time.
MAIL_PAUSE = timedelta(minutes=5)
FIRST_WAIT, LONGEST_WAIT, STOP_AFTER = timedelta(seconds=5), timedelta(days=1), timedelta(days=7)
MAILTO = "mailto:"
# Makes the JSON text of changes, and of the position up to which they go.
Encoder = Callable[[Sequence[GlobalTagChange], int], bytes]


def send(subscription: Subscription, changes: Sequence[GlobalTagChange], position: int, encode: Encoder) -> None:
    """Send changes up to a position, once; without changes, it is a test. Raises `OSError`."""
    if subscription.url.startswith(MAILTO):
        mail.send_changes(subscription.url.removeprefix(MAILTO), changes)
    else:
        # The same identifier never has different changes: a receiver may ignore the second request.
        identifier = f"{subscription.id}-{subscription.delivered}-{position}" if changes else f"test-{time.time_ns()}"
        webhooks.send(subscription.url, subscription.secret, identifier, encode(changes, position))


def repeat(step: Callable[[], object]) -> None:
    """Call `step` about every second until the process ends, also after errors, which are logged."""
    while True:
        pause = INTERVAL_SECONDS
        try:
            step()
        except Exception as error:
            is_known = isinstance(error, DatabaseError | CdbError | OSError)
            logger.warning("notices cannot be sent: %s", " ".join(str(error).split()), exc_info=not is_known)
            connections.close_all()
            pause = PAUSE_SECONDS
        time.sleep(pause)


class Deliverer:
    """Sends what is due, in threads of its own, so that a slow receiver delays no other one."""

    def __init__(self, encode: Encoder) -> None:
        self._encode = encode
        self._pool = ThreadPoolExecutor(WORKERS, "notices")
        self.running: list[Future[None]] = []

    def step(self) -> None:
        """Begin to send what is due. Raises `django.db.Error`, the errors of `write`, and those of an earlier delivery."""
        ended = [one for one in self.running if one.done()]
        self.running = [one for one in self.running if one not in ended]
        with connection.cursor() as cursor:
            cursor.execute(CLAIM, {"most": WORKERS - len(self.running), "seconds": LEASE.total_seconds()})
            claimed = [number for (number,) in cursor.fetchall()]
        if claimed:
            number_changes()
        self.running += [self._pool.submit(self._deliver_all, number) for number in claimed]
        for one in ended:
            one.result()

    def _deliver_all(self, number: int) -> None:
        try:
            while self._deliver(number):
                pass
        finally:
            connections.close_all()

    def _deliver(self, number: int) -> bool:
        """Send the next changes of a subscription, and store the outcome. Returns whether there may be more to send now."""
        subscription = Subscription.objects.filter(id=number, stopped=None).first()
        if subscription is None:
            return False
        changes = list(page_after(subscription.delivered, MOST_WRITES).changes)
        positions = {change.position or 0 for change in changes}
        values: dict[str, object] = {"delivered": max(positions, default=subscription.delivered)}
        pause = LEASE if len(positions) == MOST_WRITES else timedelta()
        if wanted := [change for change in changes if _is_wanted(subscription, change)]:
            try:
                send(subscription, wanted, max(positions), self._encode)
            except Exception as error:  # also after a bug, the others get their changes
                logger.warning("%s: %s", subscription, error, exc_info=not isinstance(error, OSError))
                values, pause = _failed(subscription, str(error))
            else:
                values |= {"delivered_at": timezone.now(), "failures": 0, "failing_since": None, "problem": ""}
                pause = MAIL_PAUSE if subscription.url.startswith(MAILTO) else pause
            metrics.DELIVERIES.labels("success" if "delivered" in values else "failure").inc()
        # Unless another process has delivered the same meanwhile.
        same = Subscription.objects.filter(id=number, delivered=subscription.delivered, stopped=None)
        # By the clock of the database, as for the lease: those of hosts may differ.
        return same.update(**values, next_attempt=Now() + pause) > 0 and pause is LEASE


def _is_wanted(subscription: Subscription, change: GlobalTagChange) -> bool:
    is_of_kind = not subscription.actions or change.action in subscription.actions
    return is_of_kind and matches(subscription.tags, change.global_tag)


def _failed(subscription: Subscription, problem: str) -> tuple[dict[str, object], timedelta]:
    """The new values of a subscription after a failure, and the time until the next attempt."""
    now = timezone.now()
    since = subscription.failing_since or now
    stopped = now if now - since >= STOP_AFTER else None
    values = {
        "failures": subscription.failures + 1,
        "failing_since": since,
        "problem": problem[:255],
        "stopped": stopped,
    }
    return values, min(FIRST_WAIT * 2 ** min(subscription.failures, 20), LONGEST_WAIT)
