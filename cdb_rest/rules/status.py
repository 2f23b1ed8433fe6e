"""The statuses of global tags, and the actions that they permit."""

from enum import Enum, StrEnum

from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import StatusChangeRefusedError, TagFrozenError, TagLockedError, invalid_field


class Status(StrEnum):
    """The built-in statuses. A tag with any other status is protected like a locked one."""

    UNLOCKED = "unlocked"
    LOCKED = "locked"
    FROZEN = "frozen"


class Action(Enum):
    """The action of a write on a tag. The value completes the error message "Global tag NAME is locked: …"."""

    ADD_LIST = "payload lists cannot be added"
    REMOVE_LIST = "payload lists cannot be removed"
    ADD_IOV = "payload IOVs cannot be added"
    REMOVE_IOV = "payload IOVs cannot be removed"
    DELETE = "it cannot be deleted"
    REVERT = "it cannot be reverted"
    SET_LIMITS = "its limits cannot be changed"
    DESCRIBE = "its author and description cannot be changed"
    REOPEN = "its limit closed_until can be lowered or removed only while it is unlocked"


# The role that each action needs on an unlocked tag.
ROLES = {
    Action.ADD_LIST: Role.CONTRIBUTOR,
    Action.REMOVE_LIST: Role.MANAGER,
    Action.ADD_IOV: Role.CONTRIBUTOR,
    Action.REMOVE_IOV: Role.MANAGER,
    Action.DELETE: Role.MANAGER,
    Action.REVERT: Role.MANAGER,
    Action.SET_LIMITS: Role.MANAGER,
    Action.DESCRIBE: Role.MANAGER,
    Action.REOPEN: Role.ADMINISTRATOR,
}
# A locked tag accepts a list of a new payload type, IOVs for intervals that no IOV covers yet, stricter limits, and another
# author or description.
PERMITTED_WHEN_LOCKED = {Action.ADD_LIST, Action.ADD_IOV, Action.SET_LIMITS, Action.DESCRIBE}


def check_status_name(name: str) -> None:
    """Raise `InvalidInputError` for a name that differs from a built-in status only in case.

    For example, a tag with the status "Frozen" would seem to be frozen, but its status could still be changed.
    """
    for status in Status:
        if name != status and name.lower() == status:
            raise invalid_field("name", f"The name {name} differs from the built-in status {status} only in case.")


def check_permitted(*, tag: str, status: str, action: Action) -> None:
    """Raise an error if a tag with this status does not permit `action`. `tag` is its name, for the message.

    Raises `TagFrozenError` for every action on a frozen tag. Raises `TagLockedError` for every action on another
    protected tag, except those in `PERMITTED_WHEN_LOCKED`. A caller that replaces a list must pass `REMOVE_LIST`.
    For `ADD_IOV`, the caller must also check that no existing interval changes.
    """
    if status == Status.UNLOCKED:
        return
    if status == Status.FROZEN:
        raise TagFrozenError(f"Global tag {tag} is frozen: {action.value}.")
    if action not in PERMITTED_WHEN_LOCKED:
        raise TagLockedError(f"Global tag {tag} is {status}: {action.value}.")


def role_for(action: Action, status: str) -> Role:
    """The least role that an action needs on a tag with this status: at least manager if the tag is protected.

    Whether the status permits the action at all is not considered; see `check_permitted`.
    """
    return max(ROLES[action], Role.MANAGER) if is_protected(status) else ROLES[action]


def role_for_status(new: str) -> Role:
    """The role that is needed to give a tag the status `new`."""
    return Role.PUBLISHER if new == Status.FROZEN else Role.MANAGER


def is_protected(status: str) -> bool:
    """Whether a tag with this status is protected: its existing intervals cannot be changed."""
    return status != Status.UNLOCKED


def check_status_change(*, tag: str, old: str, new: str) -> None:
    """Raise an error if a tag's status must not change from `old` to `new`. `tag` is its name, for the message.

    If `old` is frozen, every change is refused, also to frozen: `TagFrozenError`. An unlocked tag can get any status.
    Any other status can only stay the same or become unlocked or frozen: otherwise `StatusChangeRefusedError`.
    """
    if old == Status.FROZEN:
        raise TagFrozenError(f"Global tag {tag} is frozen: its status cannot be changed.")
    if old not in (Status.UNLOCKED, new) and new not in (Status.UNLOCKED, Status.FROZEN):
        raise StatusChangeRefusedError(f"Global tag {tag} is {old}: it may become unlocked or frozen, not {new}.")
