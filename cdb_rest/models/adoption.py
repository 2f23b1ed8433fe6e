"""What was adopted from databases of nopayloaddb, so that later changes of them can be found and taken over."""

from django.db import models
from django.db.models.functions import Now

from cdb_rest.rules.names import NAME_LENGTH, TEXT_LENGTH


class Adoption(models.Model):
    """A database of nopayloaddb from which global tags were adopted.

    `source` identifies it: the identifier of its PostgreSQL system, which its standbys share, and the name of the database.
    `decisions` are those of the first copy. `keeps_ids`: whether this database was empty, so that the objects have the ids of the
    source. `first_own_id` is greater than all of these ids, and no object of this service has a smaller one. `finished` is null
    until all of the source was copied; only then its detached objects and its deletions are taken over.
    """

    source = models.CharField(max_length=TEXT_LENGTH)
    decisions = models.JSONField()
    keeps_ids = models.BooleanField()
    first_own_id = models.BigIntegerField()
    created = models.DateTimeField(db_default=Now(), editable=False)
    finished = models.DateTimeField(null=True)

    class Meta:
        db_table = "Adoption"
        constraints = [models.UniqueConstraint(fields=["source"], name="adoption_source")]

    def __str__(self) -> str:
        return self.source


class AdoptedTag(models.Model):
    """A global tag of the source and its copy: `tag_id`, and its `revision` after the last adoption.

    `snapshot` is the snapshot of the source, as PostgreSQL writes it, of which the copy has the rows, and `updated` its time.
    """

    adoption = models.ForeignKey(Adoption, on_delete=models.PROTECT, related_name="tags")
    source_id = models.BigIntegerField()
    source_name = models.CharField(max_length=NAME_LENGTH)
    tag_id = models.BigIntegerField()
    revision = models.BigIntegerField()
    snapshot = models.TextField()
    updated = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "AdoptedTag"
        constraints = [models.UniqueConstraint(fields=["adoption", "source_id"], name="adopted_tag_source")]

    def __str__(self) -> str:
        return self.source_name


class AdoptedList(models.Model):
    """A payload list of the source and its copy, `list_id`, with a hash of the rows that it got at the last adoption."""

    adoption = models.ForeignKey(Adoption, on_delete=models.PROTECT, related_name="lists")
    source_id = models.BigIntegerField()
    list_id = models.BigIntegerField()
    version = models.IntegerField()
    iov_count = models.BigIntegerField()
    rows_hash = models.TextField()

    class Meta:
        db_table = "AdoptedList"
        constraints = [models.UniqueConstraint(fields=["adoption", "source_id"], name="adopted_list_source")]
        indexes = [models.Index(fields=["adoption", "rows_hash"], name="adopted_list_hash")]

    def __str__(self) -> str:
        return f"payload list {self.source_id} as {self.list_id}"
