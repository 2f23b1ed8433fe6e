"""Write services for the texts that describe global tags and payload types."""

from cdb_rest.models import ChangeAction, GlobalTag, PayloadType
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin, Role
from cdb_rest.rules.status import Action
from cdb_rest.writes.change_log import Changes
from cdb_rest.writes.locks import check_tag, lock_global_tag
from cdb_rest.writes.payload_types import lock_payload_type, record_type
from cdb_rest.writes.transactions import write


@write
def describe_global_tag(
    *, name: str, author: str | None = None, description: str | None = None, origin: Origin = BY_THE_SYSTEM
) -> GlobalTag:
    """Set the author and the description of a tag; None leaves a text as it is. If they do not differ, nothing changes.

    Raises `GlobalTagNotFoundError`, `TagFrozenError`, or the errors of missing permissions.
    """
    tag = lock_global_tag(name)
    check_tag(tag, Action.DESCRIBE, origin)
    before = {"author": tag.author, "description": tag.description}
    given = {"author": author, "description": description}
    after = before | {key: text for key, text in given.items() if text is not None}
    if after != before:
        GlobalTag.objects.filter(id=tag.id).update(**after)
        changes = Changes()
        changes.of_tag(tag.id).source = {"before": before, "after": after}
        changes.record(ChangeAction.DESCRIBE, origin)
    return GlobalTag.objects.select_related("status").get(id=tag.id)


@write
def describe_payload_type(*, name: str, description: str, origin: Origin = BY_THE_SYSTEM) -> PayloadType:
    """Set the description of a payload type. If it does not differ, nothing changes.

    Raises `PayloadTypeNotFoundError`, or the errors of missing permissions.
    """
    origin.principal.require(Role.MANAGER, None, name)
    payload_type = lock_payload_type(name)
    before = payload_type.description
    if description != before:
        payload_type.description = description
        payload_type.save(update_fields=["description"])
        record_type(name, ChangeAction.DESCRIBE, origin, before=before, after=description)
    return payload_type
