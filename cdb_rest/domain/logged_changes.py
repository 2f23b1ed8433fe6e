"""The earlier format of the change log, read backwards: the revisions of a tag, and when each payload list was in it.

Removing what a logged change removed, and adding what it added, leads from the revision before it to its own. The functions
here undo this for the status and the payload lists of a tag. They stop at the first change that contradicts the later ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """The attributes of a logged change. `lists_*` are names of payload lists by payload type.

    `status_*` are None if the status did not change. `is_copy` says that it created the tag as a clone or a scenario; the log
    has no IOVs of such a change. `is_creation` says that it created an empty tag, `is_deletion` that it deleted the tag.
    """

    id: int
    number: int
    revision: int
    status_before: str | None = None
    status_after: str | None = None
    lists_before: Mapping[str, str] = field(default_factory=dict)
    lists_after: Mapping[str, str] = field(default_factory=dict)
    is_copy: bool = False
    is_creation: bool = False
    is_deletion: bool = False

    @property
    def is_beginning(self) -> bool:
        """Whether the tag did not exist before the change."""
        return self.is_copy or self.is_creation


@dataclass(slots=True)
class Stay:
    """The time in which a payload list was in a tag: from the change `first` up to the change `last`, which is exclusive.

    `first` is None if it is not known. `last` is None if the list was in the tag after the newest logged change.
    `came_empty` says that the log has all IOVs with which the list came.
    """

    name: str
    payload_type: str
    first: int | None = None
    last: int | None = None
    came_empty: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read: changes with the status after each, newest first; and the stays of payload lists.

    `is_complete` says that the last change created the tag. If a change contradicts the later ones, `contradiction` is the
    reason, and `contradicting` the change; it is not among `changes`.
    """

    changes: list[tuple[LoggedChange, str]]
    stays: list[Stay]
    is_complete: bool = False
    contradicting: LoggedChange | None = None
    contradiction: str = ""


def trace(changes: Iterable[LoggedChange], status: str, lists: Mapping[str, str]) -> Trace:
    """Undo logged changes, newest first. `status` and `lists` (payload types by name) are the state after the newest one."""
    present = {name: Stay(name, payload_type) for name, payload_type in lists.items()}
    stays = list(present.values())
    read: list[tuple[LoggedChange, str]] = []
    for change in changes:
        if contradiction := _contradiction(change, status, present):
            return Trace(read, stays, contradicting=change, contradiction=contradiction)
        read.append((change, status))
        status = change.status_before or status
        for name in change.lists_after.values():
            stay = present.pop(name)
            stay.first, stay.came_empty = change.number, not change.is_copy
        left = [Stay(name, payload_type, last=change.number) for payload_type, name in change.lists_before.items()]
        present |= {stay.name: stay for stay in left}
        stays += left
        if change.is_beginning:
            return Trace(read, stays, is_complete=True)
    return Trace(read, stays)


def _contradiction(change: LoggedChange, status: str, present: Mapping[str, Stay]) -> str:
    if change.is_deletion:
        return "it deleted the tag, and the log does not have its new creation"
    if change.status_after not in (None, status):
        return f"it set the status {change.status_after}, but later the status was {status}"
    for payload_type, name in change.lists_after.items():
        if name not in present or present[name].payload_type != payload_type:
            return f"it added payload list {name}, which was not in the tag later"
    others = present.keys() - set(change.lists_after.values())
    for name in change.lists_before.values():
        if name in others:
            return f"it removed payload list {name}, which was in the tag later"
    if change.is_beginning and others:
        return f"it created the tag without payload list {min(others)}, which was in the tag later"
    return ""
