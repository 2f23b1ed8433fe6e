"""Results that a page shows payload type by payload type, so that the first ones are there before all are computed.

A page has the results of a first batch of payload types. Its last row says how many there are; when it becomes visible, htmx
replaces it by the next batch. Without JavaScript, it is a link.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# A batch has about this many IOVs, which takes a second.
BATCH_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Some payload types of a result: `names`, of which `done` are up to the end of this batch, of `total` ones."""

    names: Sequence[str]
    done: int
    total: int

    @property
    def after(self) -> str | None:
        """The parameter `after` of the next batch, None if this is the last one."""
        return self.names[-1] if self.done < self.total else None

    @property
    def is_all(self) -> bool:
        """Whether this is the only batch."""
        return len(self.names) == self.total


def next_batch(sizes: Sequence[tuple[str, int]], after: str) -> Batch:
    """The first batch of the payload types after one, in the byte order of their names.

    `sizes` has the payload types in this order with their numbers of IOVs; an empty `after` is before all.
    """
    names, rows, done = [], 0, 0
    for name, size in sizes:
        if rows >= BATCH_ROWS:
            break
        done += 1
        if name.encode() > after.encode():
            names.append(name)
            rows += size
    return Batch(names, done, len(sizes))
