"""Internal tables: idempotency records, and properties that are fixed when the database is created."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.domain.names import NAME_LENGTH, TEXT_LENGTH


class IdempotencyRecord(models.Model):
    """The response to the first request with an idempotency key, and the SHA-256 digest of that request."""

    key = models.CharField(max_length=TEXT_LENGTH)
    request_digest = models.CharField(max_length=64)
    answer = models.TextField()
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "KeptAnswer"
        constraints = [models.UniqueConstraint(fields=["key"], name="kept_answer_key")]
        indexes = [models.Index(fields=["created"], name="kept_answer_created")]

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
