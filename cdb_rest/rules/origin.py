"""The origin of a write, for the change log."""

from dataclasses import dataclass

from cdb_rest.rules.access import SYSTEM, Principal


@dataclass(frozen=True, slots=True)
class Origin:
    """The actor of a change, the actor's comment, and the principal, whose permissions the services check.

    The actor is the principal's name, a client's address, or a command's name. Commands may do everything.
    """

    actor: str = ""
    comment: str = ""
    principal: Principal = SYSTEM


UNKNOWN = Origin()
