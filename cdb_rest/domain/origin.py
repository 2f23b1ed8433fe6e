"""Where a write comes from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who makes a change (an authenticated subject, a client's address or a command's name), and why, in their words."""

    actor: str = ""
    comment: str = ""


UNKNOWN = Origin()
