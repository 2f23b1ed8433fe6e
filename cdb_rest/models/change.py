"""The change log of global tags."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH, TEXT_LENGTH


class ChangeAction(models.TextChoices):
    """The kind of write that caused a change."""

    CREATE = "create"
    CLONE = "clone"
    ADOPT = "adopt"  # a copy of a database of nopayloaddb
    SEED = "seed"  # the generation of a scenario
    STATUS = "status"
    ATTACH_LIST = "attach_list"
    DELETE_LIST = "delete_list"
    ATTACH_IOV = "attach_iov"
    DELETE_IOV = "delete_iov"
    BULK = "bulk"  # a bulk insert or an import
    INSERT = "insert"  # an insertion by the names of tag and payload type
    CLEAR = "clear"  # no payload is valid in an interval any more
    LIMITS = "limits"
    DESCRIBE = "describe"  # another author or description
    REVERT = "revert"
    REPAIR = "repair"
    RESTORE = "restore"  # a restoration of the database
    DELETE = "delete"


class GlobalTagChange(models.Model):
    """One change of a global tag: who changed it, when, how and why. What changed is read from the history of rows.

    `number` orders all changes of all tags and lists; changes of several tags by one write have the same one. It comes
    from the sequence cdb_change_number while the tags and lists are locked, so that the numbers of a tag, or of a list,
    have the order of commits.

    `global_tag` is the name of the tag, so that the log outlives it, and `tag_id` its id. A later tag with the same name
    continues the revisions. `status` is the status after the change, and `has_history` says whether the state after the
    change can be requested: it has not been pruned.
    `payload_iovs_before` and `payload_iovs_after` are the numbers of IOVs that the change removed and added.

    `position` is the place in the order in which programs read the changes of all tags, null until it is given. Changes by one
    write have the same one. It is given after the commit, so that no change comes before one that was already read.

    `source` is, for a clone, the copied tag and its revision, for a scenario its name, layout and seed, for an adoption the
    source with its snapshot and the decisions, and for another description the author and the description `before` and `after`.
    A change by an accepted request also has the `request` and who has `requested` it.
    """

    number = models.BigIntegerField()
    global_tag = models.CharField(max_length=NAME_LENGTH)
    tag_id = models.BigIntegerField(null=True)
    revision = models.BigIntegerField()
    status = models.CharField(max_length=NAME_LENGTH, blank=True, db_default="", default="")
    has_history = models.BooleanField(db_default=True, default=True)
    created = models.DateTimeField()
    actor = models.CharField(max_length=TEXT_LENGTH)
    action = models.CharField(max_length=20, choices=ChangeAction)
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True)
    payload_iovs_before = models.BigIntegerField()
    payload_iovs_after = models.BigIntegerField()
    source = models.JSONField(null=True)
    position = models.BigIntegerField(null=True, editable=False)

    class Meta:
        db_table = "GlobalTagChange"
        verbose_name = "change of a global tag"
        verbose_name_plural = "changes of global tags"
        constraints = [models.UniqueConstraint(fields=["global_tag", "revision"], name="global_tag_change_revision")]
        indexes = [
            models.Index(fields=["global_tag", "created"], name="global_tag_change_created"),
            models.Index(fields=["number"], name="global_tag_change_number"),
            models.Index(fields=["position"], name="global_tag_change_position"),
            models.Index(fields=["number"], name="global_tag_change_new", condition=Q(position=None)),
        ]

    def __str__(self) -> str:
        return f"{self.global_tag} revision {self.revision}: {self.action}"


class PayloadTypeChange(models.Model):
    """One change of a payload type: its creation, another description, or its deletion. Rows are only added.

    `before` and `after` are the descriptions. The history of a payload type that other programs made begins with its first
    change by this service.
    """

    payload_type = models.CharField(max_length=NAME_LENGTH)
    created = models.DateTimeField(db_default=Now(), editable=False)
    actor = models.CharField(max_length=TEXT_LENGTH)
    action = models.CharField(max_length=20)
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True, default="")
    before = models.CharField(max_length=TEXT_LENGTH, blank=True, default="")
    after = models.CharField(max_length=TEXT_LENGTH, blank=True, default="")

    class Meta:
        db_table = "PayloadTypeChange"
        indexes = [models.Index(fields=["payload_type"], name="payload_type_change_type")]

    def __str__(self) -> str:
        return f"{self.payload_type}: {self.action} by {self.actor}"
