"""Writes that were planned for one revision of a global tag."""

from collections.abc import Callable
from typing import TypeVar

from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.errors import TagChangedError
from cdb_rest.writes.transactions import write

Result = TypeVar("Result")


@write
def if_unchanged(tag: str, revision: int, service: Callable[[], Result]) -> Result:
    """Call a write service that records at most one change of the tag, and roll it back if the tag has a newer change.

    The check comes after the service, which locks the tag when it records its change, so no other change can come between
    them. Raises `TagChangedError`, and the errors of the service.
    """
    result = service()
    newer = GlobalTagChange.objects.filter(global_tag=tag, revision__gt=revision).order_by("revision")
    if newer.count() > 1:
        first = newer.values_list("revision", "actor", "action").first()
        assert first is not None  # noqa: S101 -- for the type checker
        raise TagChangedError(
            f"Global tag {tag} has changed since revision {revision} (revision {first[0]}: {first[2]} by {first[1]}). "
            "Nothing was stored; check the new preview."
        )
    return result
