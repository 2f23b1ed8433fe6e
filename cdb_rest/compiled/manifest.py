"""The description of a compiled tag: of which state it was made, and its files with their checksums.

The files of a compiled tag:

- `rows.copy`: the rows of all lists together in PostgreSQL's binary COPY format, by start. A record has the number of the list,
  start and end of the IOV, and the row as a JSON array, as in the answer of a lookup.
- `offsets.npy`: where the JSON array of each record begins, and, after the last one, where that of another record would begin.
- `majors.npy`, `minors.npy`: the starts of these rows.
- `lists.npy`: the numbers of the lists of these rows, in the order of an answer.
- `counts.npy`: for every `block`-th of these rows, how many rows before it each list has: an array with one row for each block
  and one column for each list.
- `places.npy`: the places of the rows of each list among all rows, list by list.

So the number of rows up to a moment in every list takes one binary search, one row of `counts`, and a count of the list numbers
in a part of a block. The rows of an answer are near each other, because their starts are: reading rows that are spread over the
whole file would take most of the time of a lookup.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

# It changes when other code would read the files in another way; then they are made again.
FORMAT = 2
ROWS, OFFSETS, MAJORS, MINORS, LISTS, COUNTS, PLACES = (
    "rows.copy",
    "offsets.npy",
    "majors.npy",
    "minors.npy",
    "lists.npy",
    "counts.npy",
    "places.npy",
)
FILES = (ROWS, OFFSETS, MAJORS, MINORS, LISTS, COUNTS, PLACES)
MANIFEST = "manifest.json"


class UnusableError(Exception):
    """A compiled tag is damaged, incomplete, or of another format. The message is one line."""


class CompiledList(NamedTuple):
    """A payload list: its id, the name of its payload type, the transaction that wrote the list's row, the number of its rows.

    The transaction is None if it is below the manifest's horizon, and for a past revision.
    """

    id: int
    payload_type: str
    written_by: int | None
    rows: int


class FileSum(NamedTuple):
    """The size of a file in bytes, and the SHA-256 digest of its contents."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The state of a tag that was compiled, and its files.

    `database` is the result of cdb_database_identity(). `version` and `status` are those of the tag (`State`), and
    `last_modified` is its time for `Last-Modified`. `changed` is the time of the revision, None if it is not in the log. All
    transactions with an id below `horizon` had ended. For a past revision, `version` is that of the past, `status` is None, and
    `last_modified` and `horizon` are None.
    """

    database: str
    tag: str
    tag_id: int
    revision: int
    changed: datetime | None
    version: str
    past_version: str | None
    status: str | None
    last_modified: datetime | None
    horizon: int | None
    compiled: datetime
    seconds: float
    block: int
    lists: tuple[CompiledList, ...]
    files: dict[str, FileSum]

    @property
    def is_past(self) -> bool:
        """Whether it was made of a past revision, and not of the present state of the tag."""
        return self.status is None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(payload_list.rows for payload_list in self.lists)

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(file.size for file in self.files.values())

    @property
    def key(self) -> tuple[int, int | None]:
        """What a compiled tag replaces if it has the same key: the present state of a tag, or a past revision of it."""
        return self.tag_id, self.revision if self.is_past else None

    def to_json(self) -> bytes:
        """The manifest as a file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, default=datetime.isoformat).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Manifest":
        """The manifest in a file. Raises `UnusableError`."""
        try:
            values: dict[str, Any] = json.loads(text)
            if values.pop("format") != FORMAT:
                raise UnusableError("it has another format")
            for name in ("changed", "last_modified", "compiled"):
                values[name] = values[name] and datetime.fromisoformat(values[name])
            values["lists"] = tuple(CompiledList(*value) for value in values["lists"])
            values["files"] = {name: FileSum(*one) for name, one in values["files"].items()}
            return cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UnusableError(f"its manifest is damaged: {error}") from error


def directory_name(manifest: Manifest) -> str:
    """The name of the directory of a compiled tag. It contains a digest of the manifest, so that a damaged one is noticed."""
    digest = hashlib.sha256(manifest.to_json()).hexdigest()[:20]
    return f"{manifest.tag_id}-{manifest.revision}-{digest}"


def read_manifest(path: Path) -> Manifest:
    """The manifest in the directory of a compiled tag. Raises `UnusableError`, or `FileNotFoundError` if it is gone."""
    text = (path / MANIFEST).read_bytes()
    if path.name.rpartition("-")[2] != hashlib.sha256(text).hexdigest()[:20]:
        raise UnusableError("its manifest is damaged")
    return Manifest.from_json(text)


def sum_of(path: Path) -> FileSum:
    """The size and the digest of a file. Raises `OSError`."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileSum(file.tell(), digest)
