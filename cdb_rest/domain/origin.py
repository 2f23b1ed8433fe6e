"""The origin of a write, for the change log."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The actor of a change (an authenticated subject, a client's address or a command's name), and the actor's comment."""

    actor: str = ""
    comment: str = ""


UNKNOWN = Origin()
