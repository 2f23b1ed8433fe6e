"""Global tags and their statuses."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.models.names import NAME_LENGTH, TEXT_LENGTH


class GlobalTagStatus(models.Model):
    """What may be done to a tag, by name; `cdb_rest.domain.status` gives the names their meaning."""

    name = models.CharField(max_length=NAME_LENGTH)
    description = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "GlobalTagStatus"
        constraints = [models.UniqueConstraint(fields=["name"], name="global_tag_status_name")]

    def __str__(self) -> str:
        return self.name


class GlobalTag(models.Model):
    """A named set of payload lists, at most one for each payload type.

    The two counts are kept by triggers in the database, whoever writes. `revision` is raised by every change that can
    alter an answer of the tag, and `updated` with it; `GlobalTagChange` has the changes.
    """

    name = models.CharField(max_length=NAME_LENGTH)
    author = models.CharField(max_length=NAME_LENGTH, blank=True, default="", db_default="")
    description = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    status = models.ForeignKey(GlobalTagStatus, on_delete=models.PROTECT, related_name="global_tags")
    created = models.DateTimeField(db_default=Now(), editable=False)
    updated = models.DateTimeField(db_default=Now(), editable=False)
    revision = models.BigIntegerField(db_default=0, editable=False)
    payload_lists_count = models.BigIntegerField(db_default=0, editable=False)
    payload_iov_count = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        db_table = "GlobalTag"
        constraints = [models.UniqueConstraint(fields=["name"], name="global_tag_name")]

    def __str__(self) -> str:
        return self.name
