"""Snapshots: one SQLite file with global tags at one revision each, which answers without network.

Tables (schema version 1):

- `snapshot` has one row: `service` (address), `created` (time), `client` (version), `checksum` of all that is not in these three
  (null: the file is not complete), and `document`, a JSON object: `since`, `until` and `payload_types` (the window and the
  payload types, null for all), `settings` (public settings), `types` and `statuses` (as the service sent them).
- `tag`: name, revision, and `document`: its item at that revision, as the service sent it.
- `list`: a payload list of a tag: payload type, name, and the number of its IOVs (null: they are not stored yet).
- `iov`: the IOVs by list and start, with the end as the service writes it.

IOVs that several tags of a snapshot have in common are stored once for each tag.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from cdb_client.contents import Stretch
from cdb_client.errors import DataError, NotFoundError, OutsideSnapshotError
from cdb_client.moments import FIRST, OPEN, Moment, end_of_window, exclusive_end, wire_end
from cdb_client.payload import COLUMNS
from cdb_client.sources import AsOf, Found, Item, Row, label

APPLICATION_ID, SCHEMA_VERSION = 0x63646273, 1
# The JSON array of a lookup's row.
ROW = """json_array(list.payload_type, iov.url, iov.checksum, iov.size,
    iov.major, iov.minor, iov.major_end, iov.minor_end, iov.revision)"""
# For each list one descent in the primary key, which ends at the row with the latest start.
FIND = f"""
SELECT group_concat((
    SELECT {ROW} FROM iov WHERE iov.list = list.id AND (iov.major, iov.minor) <= (?, ?)
    ORDER BY iov.major DESC, iov.minor DESC LIMIT 1
)) FROM list WHERE list.tag = ?"""  # noqa: S608 -- only constants
STARTING = f"""
SELECT {ROW} FROM list JOIN iov ON iov.list = list.id
WHERE list.tag = ? AND list.payload_type IN (SELECT value FROM json_each(?))
    AND (iov.major, iov.minor) > (?, ?) AND (iov.major, iov.minor) <= (?, ?)
ORDER BY list.payload_type, iov.major, iov.minor"""  # noqa: S608


class SnapshotTag(NamedTuple):
    """A global tag of a snapshot: its item as the service sent it, and the names of its payload lists by payload type."""

    id: int
    name: str
    revision: int
    document: Item
    lists: dict[str, str]


class _Rows(dict[str, Row]):
    """The rows of a lookup by payload type; `check` raises an error for payload types that the snapshot does not have."""

    def __init__(self, rows: Iterable[Row], check: Callable[[str], None]) -> None:
        super().__init__((row[0], row) for row in rows)
        self._check = check

    def get(self, name: str, default: Any = None) -> Any:
        self._check(name)
        return super().get(name, default)


class SnapshotFile:
    """A snapshot that is read. It can be used by several threads and processes, also on a read-only file system.

    `document` and `checksum` are as above, `mode` is `continuous` or `discrete`, and `since` and `until` are the window. What
    the snapshot does not contain raises `OutsideSnapshotError`; a damaged file, or one that is no snapshot, `DataError`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self.name = Path(path), f"the snapshot {path}"
        if not self.path.is_file():
            raise NotFoundError(f"There is no snapshot {self.path}.")
        self._process = 0
        with self.read() as database:
            check_format(database, self.path)
            [(self.service, self.created, self.client, document, self.checksum)] = database.execute(
                "SELECT service, created, client, document, checksum FROM snapshot"
            )
            if self.checksum is None:
                raise DataError(f"The snapshot {self.path} is not complete: create it again, which continues it.")
            self.document: Item = json.loads(document)
            self._tags = {
                name: SnapshotTag(number, name, revision, json.loads(item), {})
                for number, name, revision, item in database.execute("SELECT * FROM tag ORDER BY name")
            }
            for tag, payload_type, name in database.execute(
                "SELECT tag.name, payload_type, list.name FROM list JOIN tag ON tag.id = list.tag ORDER BY payload_type"
            ):
                self._tags[tag].lists[payload_type] = name
            self.mode: str = self.document["settings"]["CDB_IOV_MODE"]
            self.since, self.until = Moment(*self.document["since"] or FIRST), Moment(*self.document["until"] or OPEN)

    def tags(self) -> list[Item]:
        """The items of the global tags, by name. As in the list of the service, they are without limits."""
        limits = ("closed_until", "largest_major")
        return [{key: value for key, value in tag.document.items() if key not in limits} for tag in self._tags.values()]

    def types(self) -> list[Item]:
        """The payload types of the service when the snapshot was begun."""
        return list(self.document["types"])

    def statuses(self) -> list[Item]:
        """The statuses of the service when the snapshot was begun."""
        return list(self.document["statuses"])

    def setting(self, name: str) -> Any:
        """A public setting of the service. Raises `NotFoundError`."""
        if name not in self.document["settings"]:
            raise NotFoundError(f"There is no setting {name!r} in the snapshot {self.path}.")
        return self.document["settings"][name]

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        self._process = 0

    def tag(self, name: str, as_of: AsOf | None) -> SnapshotTag:
        """The tag of that name. `as_of`, if given, must be the revision that the snapshot has."""
        found = self._tags.get(name)
        if found is None:
            self._outside(f"no global tag {name!r}; it has {', '.join(self._tags)}")
        if as_of and as_of != AsOf("rev", str(found.revision)):
            self._outside(f"no global tag {label(name, as_of)}; it has revision {found.revision}")
        return found

    def state_of(self, name: str, as_of: AsOf | None) -> Item:
        """The item of the tag."""
        return self.tag(name, as_of).document

    def find(self, name: str, as_of: AsOf | None, moment: Moment) -> Found:
        """The rows at a moment."""
        tag = self.tag(name, as_of)
        return Found(tag.revision, _Rows(self._find(tag, moment), self._check_type))

    def range(
        self,
        names: Sequence[str],
        states: Sequence[AsOf | None],
        since: Moment | None,
        until: Moment | None,
        types: Sequence[str],
    ) -> Iterator[Item]:
        """The elements of the service's `payload-iovs/range`. Without `since` or `until`, the window is that of the snapshot."""
        tags = [self.tag(name, as_of) for name, as_of in zip(names, states, strict=True)]
        since, until = since or self.since, until or self.until
        end = end_of_window(since, until, self.mode)
        if end > exclusive_end(self.until, self.mode):
            self._outside(f"no IOVs up to {until}; its window is {self.since} up to {self.until}")
        for name in types:
            self._check_type(name)
            if all(name != known["name"] for known in self.types()):
                raise NotFoundError(f"There is no payload type {name!r} in the snapshot {self.path}.")
        chosen = sorted(set(types or (name for tag in tags for name in tag.lists)))
        stretches = []
        for tag in tags:
            with self.read() as database:
                found = database.execute(STARTING, (tag.id, json.dumps(chosen), *since, *until))
                starting = [json.loads(text) for (text,) in found]
            stretches.append(Stretch(since, end, self._find(tag, since), starting))
        return self._elements(stretches, chosen)

    def _elements(self, stretches: Sequence[Stretch], types: Iterable[str]) -> Iterator[Item]:
        for payload_type in types:
            for row, since, end in self._parts(stretches, payload_type):
                yield {
                    "payload_type": payload_type,
                    **dict(zip(COLUMNS[1:], row[1:], strict=True)),
                    "since": list(since),
                    "until": list(wire_end(end, self.mode)),
                }

    def _parts(self, stretches: Sequence[Stretch], payload_type: str) -> Iterator[tuple[Row, Moment, Moment]]:
        """The rows that strict lookups return, each with the part of the window in which they do."""

        def valid(moment: Moment) -> Row | None:
            """The valid row of the first tag that has one."""
            rows = (stretch.rows_at(moment).get(payload_type) for stretch in stretches)
            return next((row for row in rows if row and self._end(row) > moment), None)

        since, end = stretches[0].since, stretches[0].until
        edges = {since, end}
        for stretch in stretches:
            base = stretch.base_by_type.get(payload_type)
            _, starting = stretch.changes_by_type.get(payload_type, ([], []))
            for row in [*([base] if base else []), *starting]:
                edges |= {Moment(row[4], row[5]), self._end(row)}
        inside = sorted(edge for edge in edges if since <= edge <= end)
        for found, group in groupby(pairwise(inside), lambda pair: valid(pair[0])):
            if found:
                pairs = list(group)
                yield found, pairs[0][0], pairs[-1][1]

    def _find(self, tag: SnapshotTag, moment: Moment) -> list[Row]:
        if not self.since <= moment < exclusive_end(self.until, self.mode):
            self._outside(f"no IOVs at the moment {moment}; its window is {self.since} up to {self.until}")
        with self.read() as database:
            [(text,)] = database.execute(FIND, (*moment, tag.id))
        return list(json.loads(f"[{text or ''}]"))

    def _end(self, row: Row) -> Moment:
        return exclusive_end(Moment(row[6], row[7]), self.mode)

    def _check_type(self, name: str) -> None:
        chosen = self.document["payload_types"]
        if chosen is not None and name not in chosen:
            self._outside(f"no IOVs of the payload type {name!r}; it has {', '.join(chosen)}")

    def _outside(self, what: str) -> NoReturn:
        raise OutsideSnapshotError(f"The snapshot {self.path} has {what}.")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process. A damaged file raises `DataError`."""
        try:
            if self._process != os.getpid():
                address = f"file:{quote(str(self.path.absolute()))}?mode=ro&immutable=1"
                self._database = sqlite3.connect(address, uri=True, check_same_thread=False)
                self._process = os.getpid()
            yield self._database
        except (sqlite3.DatabaseError, ValueError, KeyError) as error:
            raise DataError(f"The snapshot {self.path} cannot be read, it is damaged or no snapshot: {error}") from None


def check_format(database: sqlite3.Connection, path: Path) -> None:
    """Raise `DataError` unless the file is a snapshot that this version of the client can read."""
    [(application,)] = database.execute("PRAGMA application_id")
    [(version,)] = database.execute("PRAGMA user_version")
    if application != APPLICATION_ID:
        raise DataError(f"{path} is no snapshot of cdb.")
    if version != SCHEMA_VERSION:
        raise DataError(
            f"The snapshot {path} has the schema version {version}, and this client reads {SCHEMA_VERSION}: use another "
            "version of cdb-client."
        )
