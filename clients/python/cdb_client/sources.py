"""Where answers come from: what the client asks of a service or of a snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

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
    """The rows of one global tag: for each payload type that with the latest start at or before a moment, ended or not."""

    revision: int
    rows: Mapping[str, Row]


class Source(Protocol):
    """A service (`Online`) or a snapshot (`SnapshotFile`). `as_of` is None for the present of a tag."""

    def tags(self) -> list[Item]:
        """The tag items."""

    def types(self) -> list[Item]:
        """The payload types."""

    def statuses(self) -> list[Item]:
        """The statuses of tags."""

    def setting(self, name: str) -> Any:
        """A public setting."""

    def state_of(self, name: str, as_of: AsOf | None) -> Item:
        """The tag item in that state, with `revision`."""

    def find(self, name: str, as_of: AsOf | None, moment: Moment) -> Found:
        """The rows at a moment."""

    def range(
        self,
        names: Sequence[str],
        states: Sequence[AsOf | None],
        since: Moment | None,
        until: Moment | None,
        types: Sequence[str],
    ) -> Iterable[Item]:
        """The elements of the service's `payload-iovs/range`: columns, and the part in `since` and `until`."""

    def close(self) -> None:
        """Close files and connections."""


def past(states: Sequence[AsOf | None], suffix: str = "") -> list[tuple[str, str]]:
    """The parameters of a request for these states of tags."""
    kind = next((state.kind for state in states if state), "")
    values = [state.value if state else "" for state in states]
    return [(kind + suffix, value) for value in (values[:1] if kind == "at" else values)] if kind else []
