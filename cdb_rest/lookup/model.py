"""Value types of the lookup: the query, a row, the client's validators, the state of the tag, and the result.

The strategies use only the query and the row.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson

from cdb_rest.observe import metrics
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import Interval, Mode, Moment

# Stands for the status in the state of all tags together, which have none.
ALL_TAGS = "all tags"
# Stand for the status in the state of a revision, which never changes, and in the state at a time, which may still change
# if a write with an earlier time commits later.
REVISION = "revision"
TIME = "time"


class Row(NamedTuple):
    """A row of a lookup's result. Clients read the columns by position, so their order is part of the API.

    `size` is in bytes, and 0 if it is unknown. `revision` is the revision of the payload, or None.
    """

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
    """The query of a lookup: which payload does each payload list of the global tag `tag` have at `moment`?

    For each payload list, the lookup takes the payload IOV with the latest start at or before the moment. With
    `only_valid`, it omits this payload IOV if its interval does not contain the moment. Without `only_valid`, the
    result includes payload IOVs that have ended. `mode` is the IOV mode of the database. With `as_objects`, rows are
    objects with the keys of `COLUMNS` instead of arrays. `as_of` is the past state of the tag to look in, None for the
    present. If there are `payload_types`, the response has only their rows (`select_rows`).
    """

    tag: str
    moment: Moment
    only_valid: bool = False
    as_objects: bool = False
    mode: Mode = Mode.CONTINUOUS
    as_of: AsOf | None = None
    payload_types: tuple[str, ...] = ()

    def accepts(self, row: Row) -> bool:
        """Whether the result includes `row`. It checks only that the interval contains the moment, if `only_valid`.

        `row` must have the latest start at or before the moment in its payload list.
        """
        return not self.only_valid or Interval.from_wire(row.since, row.until, self.mode).contains(self.moment)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a global tag, or of all tags together, from which a response was made.

    `version` is a short text that differs between any two states of tags with the same name. `status` is the name of
    the tag's status, or `ALL_TAGS`, `REVISION` or `TIME`. `modified` is the time for `Last-Modified`, in whole seconds. Each
    change increases it by at least one second, so it is later than the change. It is None until that time is reached,
    for past states, and for all tags together. `parts` are the versions of the states of which it consists, if there are
    several.
    """

    version: str
    status: str
    modified: datetime | None
    parts: tuple[str, ...] = ()


def past_state(version: str, as_of: AsOf) -> State:
    """The state of a tag in the past, by its version: it can change only if the request asks for a time."""
    return State(version, REVISION if as_of.time is None else TIME, None)


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a conditional GET: versions (`If-None-Match`) or a time (`If-Modified-Since`).

    `versions` are the versions in the ETags of this query, without quotes and digest. Use `ANY_STATE` for
    `If-None-Match: *`, and `NO_VALIDATORS` if the client sent none.
    """

    versions: tuple[str, ...] = ()
    modified: datetime | None = None

    def match(self, state: State) -> bool:
        """Whether the client's response is current: it was made from this state, or the validators are `ANY_STATE`."""
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

    `body` is a JSON array of the rows, ordered by payload type name. It is None if the client's validators match.
    `window` is the largest interval around the moment in which the body is the same. It is None if `body` is None,
    or if the caller did not ask for it.
    """

    state: State
    body: bytes | None
    window: Interval | None

    @property
    def text(self) -> str | None:
        """The body as text."""
        return None if self.body is None else self.body.decode()


def select_rows(body: bytes, payload_types: Collection[str]) -> tuple[bytes, set[str]]:
    """The rows of the payload types in the body of a lookup, and the names of the payload types that have one."""
    rows = orjson.loads(body)
    names = [row["payload_type_name"] if isinstance(row, dict) else row[0] for row in rows]
    selected = [row for name, row in zip(names, rows, strict=True) if name in payload_types]
    return orjson.dumps(selected), set(names).intersection(payload_types)


def parameters_of(query: LookupQuery) -> dict[str, Any]:
    """The parameters of the SQL statements for a query, except for its tag."""
    return {
        "major": query.moment.major,
        "minor": query.moment.minor,
        "only_valid": query.only_valid,
        "inclusive": query.mode is Mode.DISCRETE,
        "as_objects": query.as_objects,
    }


def moment_from(combined: Decimal | None) -> Moment | None:
    """The moment for a combined value, None for null."""
    return None if combined is None else Moment.from_combined(combined)


def count_started() -> None:
    """Count a lookup query that is sent to the database."""
    metrics.LOOKUPS_STARTED.inc()
