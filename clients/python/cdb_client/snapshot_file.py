"""Snapshots: one SQLite file with global tags at one revision each, which answers without network.

Tables (schema version 1; docs: the reference of the client):

- `meta`: name and JSON value: `service` (address), `created`, `client` (version), `mode`, `settings` (public settings),
  `since`, `until` and `payload_types` (the window and the types, null for all), `types` and `statuses` (documents of the
  service), `arguments` (of the creation), and in a complete snapshot `checksum` (of the contents) and `meta_checksum` (of the
  other values).
- `tag`: name, revision, `document` (its item at that revision, JSON), and the time at which this was known to be its newest
  revision (null: not known).
- `list`: a payload list of a tag: payload type, name, number of IOVs, and their checksum.
- `iov`: the IOVs by list and start, with the end as the service writes it. `prefix` is the directory of the URL and `rest` what
  follows. A checksum in lower-case hexadecimal is stored in binary.

IOVs that several tags of a snapshot have in common are stored once for each tag.
"""

import hashlib
import json
import os
import queue
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from cdb_client.errors import DataError, InputError, NotFoundError, OutsideSnapshotError
from cdb_client.moments import AFTER_ALL, FIRST, OPEN, Moment, exclusive_end, wire_end

APPLICATION_ID, SCHEMA_VERSION = 0x63646273, 1
# The JSON array of a lookup's row; the sub-select of the URL's prefix is that of a table with few rows.
ROW = """json_array(list.payload_type, (SELECT text FROM prefix WHERE id = iov.prefix) || iov.rest,
    CASE typeof(iov.checksum) WHEN 'blob' THEN lower(hex(iov.checksum)) ELSE iov.checksum END,
    iov.size, iov.major, iov.minor, iov.major_end, iov.minor_end, iov.revision)"""
CHOSEN = """FROM list WHERE list.tag = :tag
    AND (:types IS NULL OR list.payload_type IN (SELECT value FROM json_each(:types)))"""
# For each list one descent in the primary key, which ends at the row with the latest start.
FIND = f"""
SELECT (
    SELECT {ROW} FROM iov WHERE iov.list = list.id AND (iov.major, iov.minor) <= (:major, :minor)
    ORDER BY iov.major DESC, iov.minor DESC LIMIT 1
) {CHOSEN} ORDER BY list.payload_type"""  # noqa: S608 -- only constants
NEXT = f"""
SELECT (
    SELECT json_array(iov.major, iov.minor) FROM iov WHERE iov.list = list.id AND (iov.major, iov.minor) > (:major, :minor)
    ORDER BY iov.major, iov.minor LIMIT 1
) {CHOSEN}"""  # noqa: S608
RANGE = f"""
SELECT {ROW} FROM list JOIN iov ON iov.list = list.id
WHERE list.tag = :tag AND (:types IS NULL OR list.payload_type IN (SELECT value FROM json_each(:types)))
    AND (iov.major, iov.minor) > (:major, :minor) AND (iov.major, iov.minor) <= (:last_major, :last_minor)
ORDER BY list.payload_type, iov.major, iov.minor"""  # noqa: S608
CONTENTS = """
SELECT major, minor, major_end, minor_end, (SELECT text FROM prefix WHERE id = iov.prefix) || rest, checksum, size, revision
FROM iov WHERE list = ? ORDER BY major, minor"""
BATCH = 1000

Row = list[Any]


class SnapshotTag(NamedTuple):
    """A global tag of a snapshot: its revision, and its item as the service sent it."""

    id: int
    name: str
    revision: int
    document: dict[str, Any]
    newest_until: str | None

    def is_at(self, rev: int | None, at: str | datetime | None) -> bool:
        """Whether this is the state of that revision, and the one of that time."""
        if at is None:
            return rev in (None, self.revision)
        begun = _time(self.document["updated"])
        return begun <= _time(at) <= max(begun, _time(self.newest_until) if self.newest_until else begun)


class SnapshotFile:
    """A snapshot that is read. It can be used by several threads and processes, also on a read-only file system.

    `mode` is `continuous` or `discrete`, `since` and `until` the window (`until` as the service writes ends), and
    `payload_types` the names of the payload types that were chosen, or None for all. What the snapshot does not contain raises
    `OutsideSnapshotError`; a damaged file, or one that is no snapshot, `DataError`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise NotFoundError(f"There is no snapshot {self.path}.")
        self._process, self._idle = os.getpid(), queue.SimpleQueue[sqlite3.Connection]()
        with self.read() as database:
            check_format(database, self.path)
            self.meta: dict[str, Any] = {
                name: json.loads(value) for name, value in database.execute("SELECT name, value FROM meta")
            }
            if "checksum" not in self.meta:
                raise DataError(f"The snapshot {self.path} is not complete: create it again, which continues it.")
            self._tags = {
                name: SnapshotTag(number, name, revision, json.loads(document), until)
                for number, name, revision, document, until in database.execute("SELECT * FROM tag ORDER BY name")
            }
            lists = database.execute("SELECT tag, payload_type, name FROM list ORDER BY payload_type").fetchall()
        self.mode: str = self.meta["mode"]
        self.since = Moment(*self.meta["since"]) if self.meta["since"] else FIRST
        self.until = Moment(*self.meta["until"]) if self.meta["until"] else OPEN
        self.payload_types: list[str] | None = self.meta["payload_types"]
        self._lists: dict[int, dict[str, str]] = {tag.id: {} for tag in self._tags.values()}
        for tag, payload_type, name in lists:
            self._lists[tag][payload_type] = name
        self._known = {one["name"] for one in self.meta["types"]} | {payload_type for _, payload_type, _ in lists}

    def tags(self) -> list[dict[str, Any]]:
        """The items of the global tags, by name."""
        return [tag.document for tag in self._tags.values()]

    def types(self) -> list[dict[str, Any]]:
        """The payload types of the service when the snapshot was begun."""
        return list(self.meta["types"])

    def statuses(self) -> list[dict[str, Any]]:
        """The statuses of the service when the snapshot was begun."""
        return list(self.meta["statuses"])

    def setting(self, name: str) -> Any:
        """A public setting of the service. Raises `NotFoundError`."""
        if name not in self.meta["settings"]:
            raise NotFoundError(f"There is no public setting {name!r} in the snapshot {self.path}.")
        return self.meta["settings"][name]

    def lists(self, name: str) -> dict[str, str]:
        """The names of a tag's payload lists, by payload type in byte order."""
        return self._lists[self.tag(name).id]

    def tag(self, name: str, rev: int | None = None, at: str | datetime | None = None) -> SnapshotTag:
        """The tag of that name. `rev` or `at`, if given, must be of the state that the snapshot has."""
        found = self._tags.get(name)
        if found is None:
            self._outside(f"no global tag {name!r}; it has {', '.join(self._tags)}")
        if not found.is_at(rev, at):
            state = f"at {at}" if rev is None else f"at revision {rev}"
            self._outside(f"no global tag {name!r} {state}; it has revision {found.revision}")
        return found

    def find(
        self,
        name: str,
        moment: Moment,
        *,
        strict: bool = False,
        types: Iterable[str] | None = None,
        rev: int | None = None,
        at: str | datetime | None = None,
    ) -> list[Row]:
        """The rows of a lookup: for each payload type the latest start at or before the moment, by payload type in byte order.

        With `strict`, rows whose IOV is over are left out. Without `types`, they are all that the snapshot has.
        """
        tag = self.tag(name, rev, at)
        self._check_moment(moment)
        return [row for row in self._find(tag, moment, self._chosen(types)) if not strict or self._end(row) > moment]

    def window(
        self, name: str, moment: Moment, *, strict: bool = False, types: Iterable[str] | None = None
    ) -> tuple[Moment, Moment]:
        """An interval around the moment, inside that of the snapshot, in which `find` returns the same: its first moment and its
        end as the service writes it."""
        tag, chosen = self.tag(name), self._chosen(types)
        self._check_moment(moment)
        starts, ends = [self.since], [exclusive_end(self.until, self.mode)]
        for row in self._find(tag, moment, chosen):
            starts.append(Moment(row[4], row[5]))
            end = self._end(row)
            if strict and end > moment:
                ends.append(end)
            elif strict:
                starts.append(end)
        with self.read() as database:
            asked = {"tag": tag.id, "major": moment.major, "minor": moment.minor, "types": chosen}
            ends += [Moment(*json.loads(text)) for (text,) in database.execute(NEXT, asked) if text]
        return max(starts), wire_end(min(ends), self.mode)

    def range(
        self,
        name: str,
        since: Moment | None = None,
        until: Moment | None = None,
        *,
        types: Iterable[str] | None = None,
        rev: int | None = None,
        at: str | datetime | None = None,
    ) -> Iterator[tuple[Row, Moment, Moment]]:
        """The rows that are valid somewhere in a window, by payload type in byte order, then by start, each with the part of the
        window in which a strict lookup returns it: its first moment and its end as the service writes it.

        Without `since` or `until`, the window is that of the snapshot.
        """
        tag, chosen = self.tag(name, rev, at), self._chosen(types)
        since, until = since or self.since, until or self.until
        end = exclusive_end(until, self.mode)
        if end <= since:
            raise InputError(f"The end of a window must be after its beginning (got {since} and {until}).")
        last = OPEN if end == AFTER_ALL else wire_end(end, "discrete")
        self._check_moment(since)
        self._check_moment(last)
        return self._range(tag, since, last, end, chosen)

    def _range(
        self, tag: SnapshotTag, since: Moment, last: Moment, end: Moment, chosen: str | None
    ) -> Iterator[tuple[Row, Moment, Moment]]:
        before = {row[0]: row for row in self._find(tag, since, chosen) if self._end(row) > since}
        asked = {"tag": tag.id, "major": since.major, "minor": since.minor, "types": chosen}
        asked |= {"last_major": last.major, "last_minor": last.minor}
        with self.read() as database:
            after = (json.loads(text) for (text,) in database.execute(RANGE, asked))
            following = next(after, None)
            for payload_type in self._lists[tag.id]:
                row = before.get(payload_type)
                while True:
                    if row is None and (following is None or following[0] != payload_type):
                        break
                    if row is None:
                        row, following = following, next(after, None)
                    assert row is not None  # noqa: S101 -- for the type checker
                    until = min(self._end(row), end)
                    if following is not None and following[0] == payload_type:
                        until = min(until, Moment(following[4], following[5]))
                    yield row, max(Moment(row[4], row[5]), since), wire_end(until, self.mode)
                    row = None

    def _find(self, tag: SnapshotTag, moment: Moment, chosen: str | None) -> list[Row]:
        asked = {"tag": tag.id, "major": moment.major, "minor": moment.minor, "types": chosen}
        with self.read() as database:
            texts = [text for (text,) in database.execute(FIND, asked) if text]
        rows: list[Row] = json.loads(f"[{','.join(texts)}]")
        return rows

    def _end(self, row: Row) -> Moment:
        return exclusive_end(Moment(row[6], row[7]), self.mode)

    def _chosen(self, types: Iterable[str] | None) -> str | None:
        """Payload types as a JSON array, for statements."""
        if types is None:
            return None
        chosen = sorted(set(types))
        for name in chosen:
            if name not in self._known:
                raise NotFoundError(f"There is no payload type {name!r} in the snapshot {self.path}.")
            if self.payload_types is not None and name not in self.payload_types:
                self._outside(f"no IOVs of the payload type {name!r}; it has {', '.join(self.payload_types)}")
        return json.dumps(chosen)

    def _check_moment(self, moment: Moment) -> None:
        if not self.since <= moment < exclusive_end(self.until, self.mode):
            self._outside(f"no IOVs at the moment {moment}; its window is {self.since} up to {self.until}")

    def _outside(self, what: str) -> NoReturn:
        raise OutsideSnapshotError(f"The snapshot {self.path} has {what}.")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection for this thread. A damaged file raises `DataError`."""
        if self._process != os.getpid():
            # A process must not use connections of the one that started it.
            self._process, self._idle = os.getpid(), queue.SimpleQueue()
        try:
            try:
                database = self._idle.get_nowait()
            except queue.Empty:
                address = f"file:{quote(str(self.path.absolute()))}?mode=ro&immutable=1"
                database = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
            yield database
            self._idle.put(database)
        except (sqlite3.DatabaseError, ValueError) as error:
            raise DataError(f"The snapshot {self.path} cannot be read, it is damaged or no snapshot: {error}") from None


def check_format(database: sqlite3.Connection, path: Path) -> None:
    """Raise `DataError` unless the file is a snapshot that this version of the client can read."""
    [(application,)] = database.execute("PRAGMA application_id")
    [(version,)] = database.execute("PRAGMA user_version")
    if application != APPLICATION_ID:
        raise DataError(f"{path} is no snapshot of cdb.")
    if version != SCHEMA_VERSION:
        advice = "update cdb-client" if version > SCHEMA_VERSION else "use the version that its `meta` names"
        raise DataError(
            f"The snapshot {path} has the schema version {version}, and this client reads {SCHEMA_VERSION}: {advice}."
        )


class ContentsChecksum:
    """The checksum of the IOVs of a list, in the order of their starts. It does not depend on how they are stored."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.rows = 0

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows: start, end (two numbers each), URL, checksum, size, revision."""
        if rows:
            self._digest.update(json.dumps(rows)[1:-1].encode() + b", ")
            self.rows += len(rows)

    def __str__(self) -> str:
        return self._digest.hexdigest()


def stored_checksum(database: sqlite3.Connection, number: int) -> ContentsChecksum:
    """The checksum of the IOVs that are stored for a list."""
    found = ContentsChecksum()
    cursor = database.execute(CONTENTS, (number,))
    while rows := cursor.fetchmany(BATCH):
        found.add([(*row[:5], row[5].hex() if isinstance(row[5], bytes) else row[5], *row[6:]) for row in rows])
    return found


def contents_checksum(database: sqlite3.Connection) -> str:
    """The checksum of the contents: of the mode, window and payload types, and of the tags with their lists and IOVs.

    It uses the checksums of the lists.
    """
    digest = hashlib.sha256()

    def add(statement: str) -> None:
        for row in database.execute(statement):
            digest.update(json.dumps(row).encode() + b"\n")

    add("SELECT name, value FROM meta WHERE name IN ('mode', 'since', 'until', 'payload_types') ORDER BY name")
    add("SELECT name, revision, document FROM tag ORDER BY name")
    add(
        """SELECT tag.name, payload_type, list.name, rows, checksum FROM list JOIN tag ON tag.id = list.tag
        ORDER BY tag.name, payload_type"""
    )
    return digest.hexdigest()


def meta_checksum(database: sqlite3.Connection) -> str:
    """The checksum of the values in `meta`, except itself."""
    rows = database.execute("SELECT name, value FROM meta WHERE name <> 'meta_checksum' ORDER BY name").fetchall()
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _time(value: str | datetime) -> datetime:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except ValueError:
        raise InputError(f"A time is like 2026-11-24T12:00:00Z (got {value!r}).") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
