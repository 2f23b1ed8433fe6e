"""Revisions of global tags: the state that a request asks for by revision or time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models.functions import Now
from django.db.models.lookups import GreaterThanOrEqual

from cdb_rest.models import ChangeAction, GlobalTag, GlobalTagChange
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError, RevisionNotFoundError, RevisionPrunedError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Past:
    """The state of a global tag after a change.

    `number` orders all changes (`GlobalTagChange.number`). `tag_id` is the id that the tag had. `created` is the time of
    the change, and `status` the name of the status after it.
    """

    tag: str
    tag_id: int
    revision: int
    number: int
    created: datetime
    status: str

    @property
    def version(self) -> str:
        """The version for ETags, as the SQL function cdb_answer_at computes it."""
        # In whole microseconds. `timestamp()` is a float, which is not exact enough from 2038 on.
        return f"{self.revision}-{(self.created - EPOCH) // timedelta(microseconds=1):x}"


def find_past(tag: str, as_of: AsOf) -> Past:
    """The state of a tag that is or was called `tag`.

    Raises `GlobalTagNotFoundError`, also if the revision deleted the tag; `RevisionNotFoundError`, also for a time in the
    future or before the tag; or `RevisionPrunedError`.
    """
    changes = GlobalTagChange.objects.filter(global_tag=tag)
    if as_of.revision is not None:
        found = changes.filter(revision=as_of.revision)
    else:
        found = changes.filter(GreaterThanOrEqual(Now(), as_of.time), created__lte=as_of.time)
    columns = ("tag_id", "revision", "number", "created", "status", "has_history", "action")
    row = found.order_by("-created", "-revision").values_list(*columns).first()
    if row is None:
        raise missing_revision(tag, as_of)
    tag_id, revision, number, created, status, has_history, action = row
    check_readable(tag, revision, has_history=has_history, is_deleted=action == ChangeAction.DELETE)
    return Past(tag, tag_id, revision, number, created, status)


def check_readable(tag: str, revision: int, *, has_history: bool, is_deleted: bool) -> None:
    """Raise `GlobalTagNotFoundError` or `RevisionPrunedError` if the state of a revision cannot be read."""
    if is_deleted:
        raise GlobalTagNotFoundError(f"{tag} at revision {revision}, by which it was deleted")
    if not has_history:
        raise RevisionPrunedError(f"The history of global tag {tag} at revision {revision} is no longer stored.")


def missing_revision(tag: str, as_of: AsOf) -> GlobalTagNotFoundError | RevisionNotFoundError:
    """The error for a state that does not exist: the tag never existed, or it has no such revision."""
    is_known = GlobalTag.objects.filter(name=tag).exists() or GlobalTagChange.objects.filter(global_tag=tag).exists()
    return RevisionNotFoundError(f"{as_of} of global tag {tag}") if is_known else GlobalTagNotFoundError(tag)
