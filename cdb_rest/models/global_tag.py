"""Global tags and their statuses."""

from django.db import models
from django.db.models import F, Func
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from cdb_rest import named_sql
from cdb_rest.domain.names import NAME_LENGTH, TEXT_LENGTH

VERSION_OF_ALL = named_sql.load("global_tags_version")


# The beginning of the second after the transaction began, written so that migrations import nothing of the service.
NEXT_SECOND = Func(
    template="(date_trunc('second', CURRENT_TIMESTAMP) + interval '1 second')", output_field=models.DateTimeField()
)


class Version(Func):
    """The state of a global tag as caches know it, a short text: what the function cdb_version returns."""

    template = 'cdb_version(%(expressions)s, "GlobalTag".xmin)'
    output_field = models.CharField()

    def __init__(self) -> None:
        super().__init__(F("revision"), F("updated"))


class Modified(Func):
    """When a global tag was last modified, in whole seconds; null until that second is over."""

    template = "CASE WHEN %(expressions)s <= now() THEN %(expressions)s END"
    output_field = models.DateTimeField()

    def __init__(self) -> None:
        super().__init__(F("last_modified"))


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


class GlobalTagQuerySet(models.QuerySet["GlobalTag"]):
    """Questions that the table answers alone."""

    def with_version(self) -> "GlobalTagQuerySet":
        """The tags with what caches need: `version` and `modified`."""
        return self.annotate(version=Version(), modified=Modified())

    def with_version_of_all(self) -> "GlobalTagQuerySet":
        """The tags, each with a short text for the state of all tags there are: `version`."""
        return self.annotate(version=RawSQL(VERSION_OF_ALL, []))  # noqa: S611 -- a statement of ours without parameters


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
    # For the header of that name: whole seconds, and no two states of a name have the same.
    last_modified = models.DateTimeField(db_default=NEXT_SECOND, editable=False)
    revision = models.BigIntegerField(db_default=0, editable=False)
    payload_lists_count = models.BigIntegerField(db_default=0, editable=False)
    payload_iov_count = models.BigIntegerField(db_default=0, editable=False)

    objects = GlobalTagQuerySet.as_manager()

    class Meta:
        db_table = "GlobalTag"
        constraints = [models.UniqueConstraint(fields=["name"], name="global_tag_name")]

    def __str__(self) -> str:
        return self.name
