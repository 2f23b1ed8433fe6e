"""Payload types and payload lists."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.models.global_tag import GlobalTag
from cdb_rest.rules.names import LIST_NAME_LENGTH, NAME_LENGTH, TEXT_LENGTH


class PayloadType(models.Model):
    """A kind of calibration, such as the gains of one detector."""

    name = models.CharField(max_length=NAME_LENGTH)
    description = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "PayloadType"
        constraints = [models.UniqueConstraint(fields=["name"], name="payload_type_name")]

    def __str__(self) -> str:
        return self.name


class PayloadList(models.Model):
    """A list of the IOVs of one payload type, attached to one global tag or detached.

    A database trigger maintains `iov_count`, also for writes by other programs. `version` is the number of recorded
    changes of the list's IOVs.
    """

    name = models.CharField(max_length=LIST_NAME_LENGTH)
    description = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    global_tag = models.ForeignKey(
        GlobalTag, on_delete=models.PROTECT, related_name="payload_lists", null=True, db_index=False
    )
    payload_type = models.ForeignKey(PayloadType, on_delete=models.PROTECT, related_name="payload_lists")
    created = models.DateTimeField(db_default=Now(), editable=False)
    updated = models.DateTimeField(db_default=Now(), editable=False)
    iov_count = models.BigIntegerField(db_default=0, editable=False)
    version = models.IntegerField(db_default=0, default=0, editable=False)
    # Who may write to the list while it is detached: its creator, or the managers of the global tag that it left.
    creator = models.CharField(max_length=TEXT_LENGTH, null=True, editable=False)  # noqa: DJ001 -- null: unknown
    left_tag = models.CharField(max_length=NAME_LENGTH, null=True, editable=False)  # noqa: DJ001

    class Meta:
        db_table = "PayloadList"
        constraints = [
            models.UniqueConstraint(fields=["name"], name="payload_list_name"),
            # It is also the index on the tag, which the lookup uses.
            models.UniqueConstraint(fields=["global_tag", "payload_type"], name="payload_list_one_per_tag_and_type"),
        ]

    def __str__(self) -> str:
        return self.name
