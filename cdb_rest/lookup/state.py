"""The state of a global tag, or of all of them, without looking at what is in them: is an answer that a client has still good?"""

from cdb_rest import named_sql
from cdb_rest.lookup.lateral import State, ask

STATE = named_sql.load("global_tag_state")
VERSION_OF_ALL = named_sql.load("global_tags_version")
VERSION_OF_NONE = "0-0"
# All tags together have no status; anybody may change them.
ALL_TAGS = "all tags"


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
