"""The change log of global tags."""

from django.db import models

from cdb_rest.domain.names import COMMENT_LENGTH, NAME_LENGTH, TEXT_LENGTH


class ChangeAction(models.TextChoices):
    """The kind of write that caused a change."""

    CREATE = "create"
    CLONE = "clone"
    SEED = "seed"  # the generation of a scenario
    STATUS = "status"
    ATTACH_LIST = "attach_list"
    DELETE_LIST = "delete_list"
    ATTACH_IOV = "attach_iov"
    DELETE_IOV = "delete_iov"
    BULK = "bulk"  # a bulk insert or an import
    INSERT = "insert"  # an insertion by the names of tag and payload type
    REPAIR = "repair"
    RESTORE = "restore"  # a restoration of the database
    DELETE = "delete"


class GlobalTagChange(models.Model):
    """One change of a global tag. Removing `before` and adding `after` leads from the previous revision to this one.

    There are two exceptions. The entry of a clone or a scenario has the source instead of the IOVs. The entry of a
    deletion has the status, but not the lists and IOVs that were deleted.

    Both are documents with `status`, `payload_lists` (names by payload type) and `payload_iovs` (rows of the tag's lists),
    as far as they changed. For a clone, `after` has the member `clone_of`, and for a scenario the member `scenario`.

    The tag is referenced by name, so that the log outlives it. A later tag with the same name continues the revisions.
    """

    global_tag = models.CharField(max_length=NAME_LENGTH)
    revision = models.BigIntegerField()
    created = models.DateTimeField()
    actor = models.CharField(max_length=TEXT_LENGTH)
    action = models.CharField(max_length=20, choices=ChangeAction)
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True)
    # The numbers of IOVs in `before` and `after`, so that the documents need not be read for them.
    payload_iovs_before = models.BigIntegerField()
    payload_iovs_after = models.BigIntegerField()
    before = models.JSONField()
    after = models.JSONField()

    class Meta:
        db_table = "GlobalTagChange"
        verbose_name = "change of a global tag"
        verbose_name_plural = "changes of global tags"
        constraints = [models.UniqueConstraint(fields=["global_tag", "revision"], name="global_tag_change_revision")]

    def __str__(self) -> str:
        return f"{self.global_tag} revision {self.revision}: {self.action}"
