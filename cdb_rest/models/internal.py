"""Internal tables: idempotency records, properties that are fixed when the database is created, and restorations."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.rules.names import COMMENT_LENGTH, NAME_LENGTH, TEXT_LENGTH


class IdempotencyRecord(models.Model):
    """The response to the first request with an idempotency key, and the SHA-256 digest of that request.

    Each actor has keys of its own; `actor` is empty for clients that are not identified.
    """

    actor = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    key = models.CharField(max_length=TEXT_LENGTH)
    request_digest = models.CharField(max_length=64)
    response = models.TextField()
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "IdempotencyRecord"
        constraints = [models.UniqueConstraint(fields=["actor", "key"], name="idempotency_record_key")]
        indexes = [models.Index(fields=["created"], name="idempotency_record_created")]

    def __str__(self) -> str:
        return self.key


class DatabaseProperty(models.Model):
    """A named property of the database. `iov_mode` is the mode (CDB_IOV_MODE) in which it stores the ends of intervals."""

    name = models.CharField(max_length=NAME_LENGTH, primary_key=True)
    value = models.CharField(max_length=TEXT_LENGTH)

    class Meta:
        db_table = "DatabaseProperty"

    def __str__(self) -> str:
        return self.name


class Restoration(models.Model):
    """One restoration of the database to an earlier state, or the promotion of a standby, which may lack changes.

    Changes that were lost had revisions, and responses with them may be in HTTP caches and in the records of jobs. So
    later changes have revisions from `first_revision` on, which no change had before. `retired_names` are the names of
    global tags that were frozen before and are not frozen in the restored state: caches keep responses for a frozen tag
    without revalidation, so no tag with such a name can be frozen until these responses have expired. `timeline` is the
    result of the SQL function cdb_timeline() on the server that wrote the row.
    """

    created = models.DateTimeField(db_default=Now(), editable=False)
    first_revision = models.BigIntegerField()
    retired_names = models.JSONField(default=list)
    comment = models.CharField(max_length=COMMENT_LENGTH, blank=True)
    timeline = models.TextField(null=True, editable=False)  # noqa: DJ001 -- unknown in rows of earlier versions

    class Meta:
        db_table = "Restoration"
        constraints = [models.UniqueConstraint(fields=["first_revision"], name="restoration_first_revision")]

    def __str__(self) -> str:
        return f"{self.created}: revisions from {self.first_revision}"
