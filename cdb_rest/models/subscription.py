"""Subscriptions: where the service sends notices of changes."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.rules.access import ANY
from cdb_rest.rules.names import COMMENT_LENGTH, TEXT_LENGTH


class Subscription(models.Model):
    """A receiver of changes: a program with an address (`https:` or `http:`), or a person (`mailto:`).

    It gets the changes of the tags whose whole names match `tags`, of the kinds in `actions`, or of all kinds if that is empty,
    in the order of their positions. `delivered` is the position up to which the receiver has confirmed them. `secret` signs what
    is sent.

    The next attempt is not before `next_attempt`. A process that makes one sets it to a later time first, so that no other does
    the same. `failures` counts the attempts that have failed since the last success, the first of them at `failing_since`;
    `problem` says why the last one did. After too long a time, it is `stopped`, until an administrator resumes it.
    """

    url = models.CharField(max_length=COMMENT_LENGTH)
    secret = models.CharField(max_length=TEXT_LENGTH)
    tags = models.CharField(max_length=TEXT_LENGTH, default=ANY)
    actions = models.JSONField(default=list)
    creator = models.CharField(max_length=TEXT_LENGTH)
    created = models.DateTimeField(db_default=Now(), editable=False)
    delivered = models.BigIntegerField()
    delivered_at = models.DateTimeField(null=True)
    next_attempt = models.DateTimeField(db_default=Now())
    failures = models.IntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    problem = models.CharField(max_length=TEXT_LENGTH, blank=True, default="")
    stopped = models.DateTimeField(null=True)

    class Meta:
        db_table = "Subscription"

    def __str__(self) -> str:
        return f"subscription {self.id}"

    @property
    def state(self) -> str:
        """Whether it is working, failing or stopped."""
        return "stopped" if self.stopped else "failing" if self.failures else "working"
