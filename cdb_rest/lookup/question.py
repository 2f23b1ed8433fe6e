"""What a lookup asks, the same for every way to answer it."""

from dataclasses import dataclass

from cdb_rest.domain.moment import Mode, Moment

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
