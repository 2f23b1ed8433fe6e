"""Restorations of the database: lost revisions are not used again, and names of lost frozen tags are retired.

A tag with a retired name cannot be frozen as long as HTTP caches may have responses for the lost frozen tag.
"""

from collections.abc import Collection, Iterable
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import BigIntegerField, Func, TextField
from django.db.models.functions import Now

from cdb_rest.models import ChangeAction, GlobalTag, Restoration
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import NameRetiredError
from cdb_rest.rules.status import Status
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.transactions import write


@write
def record_restoration(*, frozen_before: Collection[str] | None, origin: Origin) -> Restoration:
    """Record that the database was restored to an earlier state. Call it before anything else writes.

    `frozen_before` are the names that `find_frozen_names` returned before the restoration, or None if they are not
    known; then no name is retired. Each tag that is not frozen gets a new revision, so that its validators differ from
    those of all lost states.
    """
    frozen = set(_frozen())
    restoration = Restoration.objects.create(
        # Greater than the revision of any lost change.
        first_revision=Func(function="cdb_new_floor", output_field=BigIntegerField()),
        retired_names=sorted(set(frozen_before or ()) - frozen),
        comment=origin.comment,
        timeline=Func(function="cdb_timeline", output_field=TextField()),
    )
    changes = Changes()
    # Frozen tags have not changed since they were frozen.
    for tag_id in GlobalTag.objects.exclude(status__name=Status.FROZEN).values_list("id", flat=True):
        changes.of_tag(tag_id)
    changes.record(ChangeAction.RESTORE, origin)
    restoration.refresh_from_db()
    return restoration


def find_frozen_names() -> set[str]:
    """The names of tags for which HTTP caches may have responses that they do not revalidate.

    These are the names of frozen tags, and those that an earlier restoration has retired. The database may have no tables
    yet, or those of an earlier version of the service.
    """
    tables = connection.introspection.table_names()
    names = set(_frozen()) if GlobalTag._meta.db_table in tables else set()
    if Restoration._meta.db_table in tables:
        names.update(*Restoration.objects.values_list("retired_names", flat=True))
    return names


def _frozen() -> Iterable[str]:
    return GlobalTag.objects.filter(status__name=Status.FROZEN).values_list("name", flat=True)


def check_not_retired(tag: str) -> None:
    """Raise `NameRetiredError` if HTTP caches may have responses for a frozen tag of this name that a restoration lost.

    This is the case if a restoration retired the name less than `CDB_FROZEN_MAX_AGE_SECONDS` ago.
    """
    max_age = timedelta(seconds=settings.CDB_FROZEN_MAX_AGE_SECONDS)
    if Restoration.objects.filter(retired_names__contains=[tag], created__gt=Now() - max_age).exists():
        raise NameRetiredError(tag)
