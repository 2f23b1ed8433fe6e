"""The state of a global tag, or of all of them, without looking at what is in them: is an answer that a client has still good?"""

from dataclasses import dataclass
from datetime import datetime

from cdb_rest import named_sql
from cdb_rest.connections.asking import ask
from cdb_rest.models.global_tag import VERSION_OF_ALL

STATE = named_sql.load("global_tag_state")
VERSION_OF_NONE = "0-0"
# All tags together have no status; anybody may change them.
ALL_TAGS = "all tags"


@dataclass(frozen=True, slots=True)
class State:
    """The state of a global tag that an answer was made from: a short text that no other state has, the name of its status,
    and when it was last modified, in whole seconds, or None while that second lasts."""

    version: str
    status: str
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class Known:
    """What a client has already: versions of the tag, or a time of last modification."""

    versions: tuple[str, ...] = ()
    modified: datetime | None = None

    def holds(self, state: State) -> bool:
        """Whether what the client has was made from that state."""
        return (
            self is ANYTHING
            or state.version in self.versions
            or (state.modified is not None and state.modified == self.modified)
        )


NOTHING = Known()
# Whatever the client has, it is content with it as long as there is an answer.
ANYTHING = Known(("*",))


def find_state(tag: str) -> State | None:
    """The state of the tag of that name, or None."""
    rows = ask(STATE, {"tag": tag})
    return State(*rows[0]) if rows else None


def find_state_of_all() -> State:
    """The state of all tags together."""
    [(version,)] = ask(VERSION_OF_ALL, {})
    return state_of_all(version)


def state_of_all(version: str) -> State:
    """The state of all tags with that version. It has no time of modification: a tag that goes leaves no later one behind."""
    return State(version, ALL_TAGS, None)
