"""Global tags and their statuses."""

from django.db import models
from django.db.models import F, Func
from django.db.models.functions import Now

from cdb_rest.rules.moment import Moment
from cdb_rest.rules.names import NAME_LENGTH, TEXT_LENGTH

# The beginning of the next second after the start of the transaction. It is written with Django's classes only, so that
# migrations import nothing of the service.
NEXT_SECOND = Func(
    template="(date_trunc('second', CURRENT_TIMESTAMP) + interval '1 second')", output_field=models.DateTimeField()
)


class Version(Func):
    """The version of a global tag for HTTP caches, a short text. It calls the SQL function cdb_version."""

    template = 'cdb_version(%(expressions)s, "GlobalTag".xmin)'
    output_field = models.CharField()

    def __init__(self) -> None:
        super().__init__(F("revision"), F("updated"))


class Modified(Func):
    """The time for `Last-Modified` of a global tag, in whole seconds; null until that time is reached."""

    template = "CASE WHEN %(expressions)s <= now() THEN %(expressions)s END"
    output_field = models.DateTimeField()

    def __init__(self) -> None:
        super().__init__(F("last_modified"))


class GlobalTagStatus(models.Model):
    """A status of global tags. `cdb_rest.rules.status` defines what the statuses permit, by name."""

    name = models.CharField(max_length=NAME_LENGTH)
    description = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    created = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        db_table = "GlobalTagStatus"
        constraints = [models.UniqueConstraint(fields=["name"], name="global_tag_status_name")]

    def __str__(self) -> str:
        return self.name


class GlobalTagQuerySet(models.QuerySet["GlobalTag"]):
    """Queries of global tags."""

    def with_version(self) -> "GlobalTagQuerySet":
        """The tags with their validators for HTTP caches, `version` and `modified`."""
        return self.annotate(version=Version(), modified=Modified())


class GlobalTag(models.Model):
    """A named set of payload lists, at most one for each payload type.

    Database triggers maintain the two counts, also for writes by other programs. The write services raise `revision`,
    set `updated` and add a `GlobalTagChange` with every change of the tag, except repairs of the counts. Other programs
    do not.
    """

    name = models.CharField(max_length=NAME_LENGTH)
    author = models.CharField(max_length=NAME_LENGTH, blank=True, default="", db_default="")
    description = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    status = models.ForeignKey(GlobalTagStatus, on_delete=models.PROTECT, related_name="global_tags")
    created = models.DateTimeField(db_default=Now(), editable=False)
    updated = models.DateTimeField(db_default=Now(), editable=False)
    # For the header Last-Modified: whole seconds, and different for any two states of tags with the same name.
    last_modified = models.DateTimeField(db_default=NEXT_SECOND, editable=False)
    revision = models.BigIntegerField(db_default=0, editable=False)
    payload_lists_count = models.BigIntegerField(db_default=0, editable=False)
    payload_iov_count = models.BigIntegerField(db_default=0, editable=False)
    # Limits for writes, null for none: what is valid before the combined moment `closed_until` must not change, and no IOV may
    # start after the major number `largest_major`.
    closed_until = models.DecimalField(max_digits=38, decimal_places=19, null=True)
    largest_major = models.BigIntegerField(null=True)
    # Whether an accepted request may change the tag although it is locked.
    accepts_requests = models.BooleanField(default=False, db_default=False)

    objects = GlobalTagQuerySet.as_manager()

    class Meta:
        db_table = "GlobalTag"
        constraints = [models.UniqueConstraint(fields=["name"], name="global_tag_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def closed(self) -> Moment | None:
        """`closed_until` as a moment."""
        return None if self.closed_until is None else Moment.from_combined(self.closed_until)
