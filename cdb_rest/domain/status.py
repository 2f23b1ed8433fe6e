"""What each status of a global tag permits."""

from enum import Enum, StrEnum

from cdb_rest.domain.errors import InvalidInputError, StatusChangeRefusedError, TagFrozenError, TagLockedError


class Status(StrEnum):
    """The statuses that have a meaning here. A tag with any other status is protected like a locked one."""

    UNLOCKED = "unlocked"
    LOCKED = "locked"
    FROZEN = "frozen"


class Action(Enum):
    """What a write does to a tag; the value completes "the tag is locked: …"."""

    ADD_LIST = "it takes no further payload list"
    REMOVE_LIST = "its payload lists stay"
    ADD_IOV = "it takes no further payload IOV"
    REMOVE_IOV = "its payload IOVs stay"
    DELETE = "it can't be deleted"


# Locked tags may grow: a type they do not have yet, an interval that no IOV covers yet.
PERMITTED_WHEN_LOCKED = {Action.ADD_LIST, Action.ADD_IOV}


def check_status_name(name: str) -> None:
    """Raise `InvalidInputError` for a name that differs from a built-in status by case alone.

    A tag with the status "Frozen" would look frozen and could be unlocked.
    """
    for status in Status:
        if name != status and name.lower() == status:
            message = f"The name {name} differs from the built-in status {status} by case alone."
            raise InvalidInputError(message, {"name": [message]})


def check_permitted(*, tag: str, status: str, action: Action) -> None:
    """Raise `TagFrozenError` or `TagLockedError` if a tag of that status does not permit `action`."""
    if status == Status.UNLOCKED:
        return
    if status == Status.FROZEN:
        raise TagFrozenError(f"Global tag {tag} is frozen: {action.value}.")
    if action not in PERMITTED_WHEN_LOCKED:
        raise TagLockedError(f"Global tag {tag} is {status}: {action.value}.")


def is_protected(status: str) -> bool:
    """Whether what is defined in a tag of that status stays as it is."""
    return status != Status.UNLOCKED


def check_status_change(*, tag: str, old: str, new: str) -> None:
    """Raise `TagFrozenError` or `StatusChangeRefusedError` if a tag of status `old` may not become `new`."""
    if old == Status.FROZEN:
        raise TagFrozenError(f"Global tag {tag} is frozen: its status stays.")
    if old not in (Status.UNLOCKED, new) and new not in (Status.UNLOCKED, Status.FROZEN):
        raise StatusChangeRefusedError(f"Global tag {tag} is {old}: it may become unlocked or frozen, not {new}.")
