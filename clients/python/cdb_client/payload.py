"""Payload IOVs, and the results of lookups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdb_client.moments import Moment

if TYPE_CHECKING:
    from cdb_client.client import Client

# The columns of a lookup's row, in the order of the service.
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
class PayloadIOV:
    """A payload and its interval of validity.

    `url` and `checksum` are as they were inserted; the checksum may be empty, and `size` 0, if none was given. `since` is the
    first moment, and `until` the end as the service writes it: exclusive in mode continuous, inclusive in mode discrete.
    """

    payload_type: str
    url: str
    checksum: str
    size: int
    since: Moment
    until: Moment
    revision: str | None
    client: "Client | None" = field(default=None, repr=False, compare=False)

    @classmethod
    def from_row(cls, row: list[Any], client: "Client | None" = None) -> "PayloadIOV":
        """The IOV of a row of a lookup, an array in the order of `COLUMNS`."""
        name, url, checksum, size, major, minor, major_end, minor_end, revision = row
        return cls(name, url, checksum, size, Moment(major, minor), Moment(major_end, minor_end), revision, client)

    @property
    def row(self) -> list[Any]:
        """The row of a lookup: an array in the order of `COLUMNS`."""
        return [self.payload_type, self.url, self.checksum, self.size, *self.since, *self.until, self.revision]

    def fetch(self) -> Path:
        """The path of the payload file in the cache, after its size and checksum were verified; it is downloaded if necessary.

        Raises `DataError` if the file is not the one that was inserted, and `UnavailableError`.
        """
        if self.client is None:
            raise ValueError("This payload IOV belongs to no client.")
        return self.client.files.fetch(self)

    def as_dict(self) -> dict[str, Any]:
        """The columns by name, with moments as (major, minor)."""
        columns = {name: getattr(self, name) for name in self.__slots__ if name != "client"}
        return columns | {"since": tuple(self.since), "until": tuple(self.until)}


@dataclass(frozen=True, slots=True)
class Resolution(Mapping[str, PayloadIOV]):
    """The result of a lookup: the payload IOV of each payload type, at one moment.

    `tags` are the names of the global tags, in the order in which they decide, and `revisions` the revision of each that was
    read.
    """

    tags: tuple[str, ...]
    revisions: tuple[int, ...]
    moment: Moment
    iovs: Mapping[str, PayloadIOV]

    def __getitem__(self, payload_type: str) -> PayloadIOV:
        return self.iovs[payload_type]

    def __iter__(self) -> Iterator[str]:
        return iter(self.iovs)

    def __len__(self) -> int:
        return len(self.iovs)
