"""The report of a restoration on the terminal."""

from collections.abc import Collection

from django.conf import settings

from cdb_rest.models import GlobalTag, PayloadIOV, Restoration

# Only the number of further names is shown.
NAMES_SHOWN = 20


def report(restoration: Restoration, frozen_before: Collection[str] | None) -> list[str]:
    """The lines of the report: the content of the database and, if needed, a warning about HTTP caches.

    `restoration` is the result of `record_restoration`, and `frozen_before` its argument: None if the names of the tags
    that were frozen before are not known.
    """
    lines = [
        f"The database has {GlobalTag.objects.count():,} global tags and {PayloadIOV.objects.count():,} payload IOVs. "
        f"Revisions continue from {restoration.first_revision}."
    ]
    if frozen_before is None:
        lines.append(
            "It is not known which global tags were frozen before. HTTP caches keep responses for frozen tags for "
            f"{settings.CDB_FROZEN_MAX_AGE_SECONDS} s: do not freeze other content under a name that was frozen."
        )
    elif names := restoration.retired_names:
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        lines.append(
            "These global tags were frozen before and are not frozen now. HTTP caches may still have their responses, so "
            f"no tag of these names can be frozen for {settings.CDB_FROZEN_MAX_AGE_SECONDS} s: "
            f"{', '.join(names[:NAMES_SHOWN])}{more}"
        )
    return lines
