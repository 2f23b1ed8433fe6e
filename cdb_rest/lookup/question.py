"""What a lookup asks, the same for every way to answer it."""

from dataclasses import dataclass

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

    def wants(self, row: tuple) -> bool:
        """Whether a row that was found, with the columns of `COLUMNS`, belongs into the answer, for all that its end says."""
        since, until = Moment(*row[4:6]), Moment(*row[6:8])
        return not self.only_valid or Interval.from_wire(since, until, self.mode).contains(self.moment)
