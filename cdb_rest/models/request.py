"""Requests: proposed changes, which a client with the permission for them accepts or rejects."""

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH, TEXT_LENGTH


class RequestKind(models.TextChoices):
    """The write that a request proposes."""

    IMPORT = "import"  # rows, as of a file
    CLEAR = "clear"
    STATUS = "status"
    CLONE = "clone"
    UNDO = "undo"


class RequestState(models.TextChoices):
    """The state of a request. Only an open one can still change."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


class ChangeRequest(models.Model):
    """One request. `global_tag` is the name of the tag that would change; for a clone, that of the new tag.

    `tag_id` and `revision` are those of the tag when the request was made, null and 0 for a clone. `document` is what the route
    of the write takes, and `effect` what would have changed then, by payload type. `result_revision` is the revision that the
    acceptance made, null if there was nothing to change any more. `mailed` is the state of which mail was sent.
    """

    kind = models.CharField(max_length=10, choices=RequestKind)
    global_tag = models.CharField(max_length=NAME_LENGTH)
    tag_id = models.BigIntegerField(null=True)
    revision = models.BigIntegerField()
    document = models.JSONField()
    effect = models.JSONField(default=list)
    reason = models.CharField(max_length=COMMENT_LENGTH)
    requester = models.CharField(max_length=TEXT_LENGTH)
    created = models.DateTimeField(db_default=Now(), editable=False)
    state = models.CharField(max_length=10, choices=RequestState, default=RequestState.OPEN)
    decided = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=TEXT_LENGTH, blank=True, default="")
    answer = models.CharField(max_length=COMMENT_LENGTH, blank=True, default="")
    result_revision = models.BigIntegerField(null=True)
    mailed = models.CharField(max_length=10, blank=True, default="")

    class Meta:
        db_table = "ChangeRequest"
        indexes = [
            models.Index(fields=["global_tag"], name="change_request_tag"),
            models.Index(fields=["requester"], name="change_request_open", condition=Q(state="open")),
            models.Index(fields=["id"], name="change_request_unmailed", condition=~Q(mailed=F("state"))),
        ]

    def __str__(self) -> str:
        return f"request {self.id}"


class RequestComment(models.Model):
    """One comment in the discussion of a request. Rows are only added."""

    request = models.ForeignKey(ChangeRequest, on_delete=models.CASCADE, related_name="comments")
    created = models.DateTimeField(db_default=Now(), editable=False)
    actor = models.CharField(max_length=TEXT_LENGTH)
    text = models.CharField(max_length=COMMENT_LENGTH)

    class Meta:
        db_table = "RequestComment"

    def __str__(self) -> str:
        return f"comment of {self.actor} on {self.request}"
