"""What a service (`Online`) and a snapshot (`SnapshotFile`), the two sources of rows, have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cdb_client.moments import Moment

# A row of a lookup, in the order of `payload.COLUMNS`.
Row = list[Any]
# An object of the service's JSON.
Item = dict[str, Any]


class AsOf(NamedTuple):
    """A state of a global tag in the past: ("rev", revision) or ("at", time)."""

    kind: str
    value: str


class Found(NamedTuple):
    """The rows of one global tag: for each payload type, the row with the latest start at or before a moment."""

    revision: int
    rows: Mapping[str, Row]


def label(name: str, as_of: AsOf | None) -> str:
    """A tag in a state, as messages name it, for example `prod (rev 12)`."""
    return f"{name} ({as_of.kind} {as_of.value})" if as_of else name


def past(states: Sequence[AsOf | None], suffix: str = "") -> list[tuple[str, str]]:
    """The parameters of a request for these states of tags. None is the present."""
    kind = next((state.kind for state in states if state), "")
    values = [state.value if state else "" for state in states]
    return [(kind + suffix, value) for value in (values[:1] if kind == "at" else values)] if kind else []


def window(since: Moment | None, until: Moment | None) -> list[tuple[str, str]]:
    """The parameters of a request for a window of moments."""
    given = {"since": since, "until": until}
    return [(name, f"{moment.major},{moment.minor}") for name, moment in given.items() if moment is not None]
