"""What a lookup asks, what a client knows already, and what it gets: the same for every way to answer."""

from dataclasses import dataclass
from datetime import datetime

from cdb_rest.domain.moment import Interval, Mode, Moment

# The columns of an answer's row, in the order that clients read by position.
COLUMNS = (
    "payload_type_name",
    "payload_url",
    "checksum",
    "size",
    "major_iov",
    "minor_iov",
    "major_iov_end",
    "minor_iov_end",
    "revision",
)
# All tags together have no status; anybody may change them.
ALL_TAGS = "all tags"

# A row with these columns.
Row = tuple[str, str, str, int, int, int, int, int, str | None]


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
        """Whether a row that was found, with the columns of `COLUMNS`, belongs into the answer, for all that its end says."""
        since, until = Moment(*row[4:6]), Moment(*row[6:8])
        return not self.only_valid or Interval.from_wire(since, until, self.mode).contains(self.moment)


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
