"""The values of a lookup: its query, the validators that the client sent, and its result.

All strategies use them.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from cdb_rest.domain.moment import Interval, Mode, Moment

# Stands for the status in the state of all tags together, which have none.
ALL_TAGS = "all tags"


class Row(NamedTuple):
    """A row of a lookup's result. Clients read the columns by position, so their order is part of the API."""

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
        """The end of the IOV in the wire format, in which an open interval ends at the greatest moment."""
        return Moment(self.major_iov_end, self.minor_iov_end)


COLUMNS = Row._fields


@dataclass(frozen=True, slots=True)
class LookupQuery:
    """The query of a lookup: which payloads does the global tag `tag` have at `moment`?

    `only_valid` leaves out IOVs that ended before the moment; `mode` says whether ends are inclusive. With
    `as_objects`, rows are objects with the keys of `COLUMNS` instead of arrays.
    """

    tag: str
    moment: Moment
    only_valid: bool = False
    as_objects: bool = False
    mode: Mode = Mode.CONTINUOUS

    def accepts(self, row: Row) -> bool:
        """Whether the row with the latest start of its payload list belongs to the result, judged by its end."""
        return not self.only_valid or Interval.from_wire(row.since, row.until, self.mode).contains(self.moment)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a global tag from which a response was made.

    `version` is a short text that no other state has, and `status` the name of the tag's status. `modified` is the time
    of the last change in whole seconds, or None until that second has passed.
    """

    version: str
    status: str
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a conditional GET: versions of the tag (`If-None-Match`) or a time (`If-Modified-Since`)."""

    versions: tuple[str, ...] = ()
    modified: datetime | None = None

    def match(self, state: State) -> bool:
        """Whether the response that the client has was made from this state."""
        return (
            self is ANY_STATE
            or state.version in self.versions
            or (state.modified is not None and state.modified == self.modified)
        )


NO_VALIDATORS = Validators()
# `If-None-Match: *`: every state matches.
ANY_STATE = Validators(("*",))


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The result of a lookup, and the state of the tag from which it was made.

    `text` is JSON with the rows ordered by payload type name, or None if the client's validators match. `window` is the
    largest interval around the moment in which the text is the same; None unless the caller asked for it.
    """

    state: State
    text: str | None
    window: Interval | None
