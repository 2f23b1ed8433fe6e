"""Payload types and payload lists."""

from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce, Now

from cdb_rest.models.global_tag import GlobalTag
from cdb_rest.rules.names import LIST_NAME_LENGTH, NAME_LENGTH, TEXT_LENGTH

# The version that stands for the present: all rows that a list has now.
PRESENT = 2147483646


def base_constraint(name: str) -> models.CheckConstraint:
    """That a base is a list and a version of it, or nothing."""
    return models.CheckConstraint(
        name=name,
        condition=Q(base_list_id__isnull=True, base_version__isnull=True)
        | Q(base_list_id__isnull=False, base_version__isnull=False),
    )


def base_index(name: str) -> models.Index:
    """The index that finds what shares the rows of a list."""
    return models.Index(name=name, fields=["base_list_id"], condition=Q(base_list_id__isnull=False))


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

    A list may share the rows of another list, its base, in one of its versions (`base_list_id`, `base_version`): it has no rows
    of its own then. The first write to it copies the rows. A base has rows of its own in that version; it may have been deleted
    since. `rows_list_id` and `rows_version` say where the present rows are, for every list.

    `edited` is a number that changes whenever another program has changed rows of the list or of its base.
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
    base_list_id = models.BigIntegerField(null=True, editable=False)
    base_version = models.IntegerField(null=True, editable=False)
    rows_list_id = models.GeneratedField(
        expression=Coalesce(F("base_list_id"), F("id")), output_field=models.BigIntegerField(), db_persist=True
    )
    rows_version = models.GeneratedField(
        expression=Coalesce(F("base_version"), Value(PRESENT)), output_field=models.IntegerField(), db_persist=True
    )
    edited = models.BigIntegerField(db_default=0, default=0, editable=False)
    # Who may write to the list while it is detached: its creator, or the managers of the global tag that it left.
    creator = models.CharField(max_length=TEXT_LENGTH, null=True, editable=False)  # noqa: DJ001 -- null: unknown
    left_tag = models.CharField(max_length=NAME_LENGTH, null=True, editable=False)  # noqa: DJ001

    class Meta:
        db_table = "PayloadList"
        constraints = [
            models.UniqueConstraint(fields=["name"], name="payload_list_name"),
            # It is also the index on the tag, which the lookup uses.
            models.UniqueConstraint(fields=["global_tag", "payload_type"], name="payload_list_one_per_tag_and_type"),
            base_constraint("payload_list_base"),
        ]
        indexes = [base_index("payload_list_of_base")]

    def __str__(self) -> str:
        return self.name
