"""What a lookup asks, what a client knows already, and what it gets: the same for every way to answer."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from cdb_rest.domain.moment import Interval, Mode, Moment

# All tags together have no status; anybody may change them.
ALL_TAGS = "all tags"


class Row(NamedTuple):
    """A row of a response. Clients read the columns by position, so their order is part of the API."""

    payload_type_name: str
    payload_url: str
    checksum: str
    size: int
    major_iov: int
    minor_iov: int
    major_iov_end: int
    minor_iov_end: int
    revision: str | None

    @property
    def since(self) -> Moment:
        """The start of the IOV."""
        return Moment(self.major_iov, self.minor_iov)

    @property
    def until(self) -> Moment:
        """The end of the IOV, as it is on the wire."""
        return Moment(self.major_iov_end, self.minor_iov_end)


COLUMNS = Row._fields


@dataclass(frozen=True, slots=True)
class Question:
    """Which payloads does `tag` have at `moment`?

    `only_valid` leaves out IOVs that are over by then, with ends as `mode` means them. `as_objects` asks for rows as
    objects with the keys of `COLUMNS`, not as arrays.
    """

    tag: str
    moment: Moment
    only_valid: bool = False
    as_objects: bool = False
    mode: Mode = Mode.CONTINUOUS

    def wants(self, row: Row) -> bool:
        """Whether a row with the latest start is part of the response, as far as its end decides that."""
        return not self.only_valid or Interval.from_wire(row.since, row.until, self.mode).contains(self.moment)


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question and the state of the tag that it was made from.

    `text` is JSON, rows ordered by payload type name, or None if the client's answer still holds. `window` is the largest
    interval around the moment in which the text is the same, if it was asked for.
    """

    state: State
    text: str | None
    window: Interval | None
