"""Results that a page shows payload type by payload type, so that the first ones are there before all are computed.

A page has the results of a first batch of payload types. Its last row says how many there are; when it becomes visible, htmx
replaces it by the next batch. Without JavaScript, it is a link.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdb_rest.analysis.contents import Contents, ListVersion
from cdb_rest.lookup.model import State
from cdb_rest.models.payload_list import PRESENT

# A batch has about this many IOVs, which takes a second.
BATCH_ROWS = 200_000
# The number of IOVs that a payload list had in the past is not known. It counts as at least this many.
PAST_ROWS = BATCH_ROWS // 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Some payload types of a result: `names`. `done` is the number of payload types up to its end, `total` that of all.

    `state` is that of the global tags. If it `has_changed` since the first batch, the batches do not belong together.
    """

    names: Sequence[str]
    done: int
    total: int
    state: str
    has_changed: bool

    @property
    def after(self) -> str | None:
        """The parameter `after` of the next batch, None if this is the last one."""
        return self.names[-1] if self.names and self.done < self.total else None

    @property
    def is_all(self) -> bool:
        """Whether this is the only batch."""
        return len(self.names) == self.total


def next_batch(query: Mapping[str, str], sizes: Sequence[tuple[str, float]], states: Sequence[State]) -> Batch:
    """The batch that a query string asks for: with `after`, the first payload types after this one, in byte order.

    `sizes` has the payload types in this order with their numbers of IOVs. `states` are those of the global tags; the
    parameter `seen` has the state of the first batch.
    """
    after = query.get("after")
    names: list[str] = []
    rows, done = 0.0, 0
    for name, size in sizes:
        # An empty name, which an adopted database may have, cannot be the end of a batch: it is before all other names.
        if rows >= BATCH_ROWS and names[-1]:
            break
        done += 1
        if after is None or name.encode() > after.encode(errors="replace"):
            names.append(name)
            rows += size
    state = " ".join(item.version for item in states)
    return Batch(names, done, len(sizes), state, query.get("seen", state) != state)


def size_of(lists: Sequence[ListVersion]) -> int:
    """An estimate of the number of IOVs of payload lists: exact for the present, otherwise at least `PAST_ROWS` for a list."""
    return sum(version.rows if version.rows_version == PRESENT else max(version.rows, PAST_ROWS) for version in lists)


def sizes_of(contents: Contents) -> list[tuple[str, int]]:
    """The payload types of contents, with their numbers of IOVs, as for `next_batch`."""
    return [(name, size_of(lists)) for name, lists in contents.lists.items()]
