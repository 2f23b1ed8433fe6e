"""Tables of the service itself: responses kept for idempotency keys, and facts that are fixed when the database is made."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.domain.names import NAME_LENGTH, TEXT_LENGTH


class KeptAnswer(models.Model):
    """The answer to the first request that came with an idempotency key, and what that request was (a SHA-256 digest)."""

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
    """A named value. `iov_mode` is the mode (CDB_IOV_MODE) in which the ends of the stored intervals are written."""

    name = models.CharField(max_length=NAME_LENGTH, primary_key=True)
    value = models.CharField(max_length=TEXT_LENGTH)

    class Meta:
        db_table = "DatabaseProperty"

    def __str__(self) -> str:
        return self.name
