"""Write services for payload types: create, describe, delete. Their history has each change."""

from django.conf import settings

from cdb_rest.models import ChangeAction, PayloadType, PayloadTypeChange
from cdb_rest.rules.access import BY_THE_SYSTEM, Origin, Role
from cdb_rest.rules.errors import PayloadTypeInUseError, PayloadTypeNotFoundError, existing
from cdb_rest.rules.names import check_new_name
from cdb_rest.writes.transactions import write


@write
def create_payload_type(*, name: str, description: str = "", origin: Origin = BY_THE_SYSTEM) -> PayloadType:
    """Create a payload type. Raises the errors of `add_payload_type`, or those of missing permissions."""
    origin.principal.require(Role.CONTRIBUTOR, None, name)
    return add_payload_type(name=name, description=description, origin=origin)


def add_payload_type(*, name: str, description: str = "", origin: Origin) -> PayloadType:
    """Create a payload type as part of a larger write. The caller must check permissions.

    Raises `InvalidInputError` for a name that violates the rule for new names, or a database error, which `write`
    translates, into `NameTakenError` if the name is taken.
    """
    check_new_name(name, settings.CDB_NAME_PATTERN)
    created = PayloadType.objects.create(name=name, description=description)
    created.refresh_from_db()
    record_type(name, ChangeAction.CREATE, origin, after=description)
    return created


@write
def delete_payload_type(*, name: str, origin: Origin = BY_THE_SYSTEM) -> None:
    """Delete a payload type.

    Raises `PayloadTypeNotFoundError`, `PayloadTypeInUseError` if a payload list has it, or the errors of missing
    permissions.
    """
    origin.principal.require(Role.MANAGER, None, name)
    payload_type = lock_payload_type(name)
    users = payload_type.payload_lists.order_by("id").values_list("name", flat=True)[:3]
    if users:
        raise PayloadTypeInUseError(f"Payload type {name} is in use by payload lists, such as {', '.join(users)}.")
    payload_type.delete()
    record_type(name, ChangeAction.DELETE, origin, before=payload_type.description)


def lock_payload_type(name: str) -> PayloadType:
    """Lock a payload type by name. The caller must be in a transaction. Raises `PayloadTypeNotFoundError`."""
    return existing(PayloadType.objects.filter(name=name).select_for_update().first(), PayloadTypeNotFoundError(name))


def record_type(name: str, action: ChangeAction, origin: Origin, *, before: str = "", after: str = "") -> None:
    """Add a change to the history of a payload type, with its description before and after it. For use in a `write`."""
    PayloadTypeChange.objects.create(
        payload_type=name, action=action, actor=origin.actor, comment=origin.comment, before=before, after=after
    )


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
