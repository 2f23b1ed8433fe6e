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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote

from cdb_client.errors import DataError, InputError, NotFoundError, OutsideSnapshotError
from cdb_client.moments import FIRST, OPEN, Moment, exclusive_end, wire_end
from cdb_client.payload import COLUMNS
from cdb_client.sources import AsOf, Found, Row

APPLICATION_ID, SCHEMA_VERSION = 0x63646273, 1
# The JSON array of a lookup's row; the sub-select of the URL's prefix is that of a table with few rows.
ROW = """json_array(list.payload_type, (SELECT text FROM prefix WHERE id = iov.prefix) || iov.rest,
    CASE typeof(iov.checksum) WHEN 'blob' THEN lower(hex(iov.checksum)) ELSE iov.checksum END,
    iov.size, iov.major, iov.minor, iov.major_end, iov.minor_end, iov.revision)"""
CHOSEN = """FROM list WHERE list.tag = :tag
    AND (:types IS NULL OR list.payload_type IN (SELECT value FROM json_each(:types)))"""
# For each list one descent in the primary key, which ends at the row with the latest start. The result is one row, because
# threads wait for each other at each row of a result.
FIND = f"""
SELECT group_concat((
    SELECT {ROW} FROM iov WHERE iov.list = list.id AND (iov.major, iov.minor) <= (:major, :minor)
    ORDER BY iov.major DESC, iov.minor DESC LIMIT 1
)) {CHOSEN}"""  # noqa: S608 -- only constants
NEXT = f"""
SELECT group_concat((
    SELECT json_array(iov.major, iov.minor) FROM iov WHERE iov.list = list.id AND (iov.major, iov.minor) > (:major, :minor)
    ORDER BY iov.major, iov.minor LIMIT 1
)) {CHOSEN}"""  # noqa: S608
RANGE = f"""
SELECT {ROW} FROM list JOIN iov ON iov.list = list.id
WHERE list.tag = :tag AND (:types IS NULL OR list.payload_type IN (SELECT value FROM json_each(:types)))
    AND (iov.major, iov.minor) > (:major, :minor) AND (iov.major, iov.minor) <= (:last_major, :last_minor)
ORDER BY list.payload_type, iov.major, iov.minor"""  # noqa: S608
CONTENTS = """
SELECT major, minor, major_end, minor_end, (SELECT text FROM prefix WHERE id = iov.prefix) || rest, checksum, size, revision
FROM iov WHERE list = ? ORDER BY major, minor"""
BATCH = 1000


class SnapshotTag(NamedTuple):
    """A global tag of a snapshot: its revision, and its item as the service sent it."""

    id: int
    name: str
    revision: int
    document: dict[str, Any]
    newest_until: str | None

    def is_at(self, as_of: AsOf | None) -> bool:
        """Whether this is the state that is asked for: that revision, or the newest one at that time."""
        if as_of is None:
            return True
        if as_of.kind == "rev":
            return as_of.value == str(self.revision)
        begun = _time(self.document["updated"])
        return begun <= _time(as_of.value) <= max(begun, _time(self.newest_until) if self.newest_until else begun)


class _Part(NamedTuple):
    """A row of a tag, and the part of a window in which a strict lookup returns it; `end` is outside."""

    tag: str
    row: Row
    since: Moment
    end: Moment


class _Rows(dict[str, Row]):
    """The rows of a lookup in a snapshot of some payload types; `check` raises an error for all others."""

    def __init__(self, rows: Iterable[Row], check: Callable[[str], None]) -> None:
        super().__init__((row[0], row) for row in rows)
        self._check = check

    def get(self, name: str, default: Any = None) -> Any:
        self._check(name)
        return super().get(name, default)


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
        """The items of the global tags, by name. As in the list of the service, they are without limits."""
        limits = ("closed_until", "largest_major")
        return [{key: value for key, value in tag.document.items() if key not in limits} for tag in self._tags.values()]

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

    def close(self) -> None:
        """Close the connections that are idle."""
        while not self._idle.empty():
            self._idle.get().close()

    def tag(self, name: str, as_of: AsOf | None = None) -> SnapshotTag:
        """The tag of that name. `as_of`, if given, must be the state that the snapshot has."""
        found = self._tags.get(name)
        if found is None:
            self._outside(f"no global tag {name!r}; it has {', '.join(self._tags)}")
        if as_of and not found.is_at(as_of):
            kind = "revision" if as_of.kind == "rev" else "time"
            self._outside(f"no global tag {name!r} at {kind} {as_of.value}; it has revision {found.revision}")
        return found

    def state_of(self, name: str, as_of: AsOf | None) -> dict[str, Any]:
        """The item of the tag."""
        return self.tag(name, as_of).document

    def find(self, name: str, as_of: AsOf | None, moment: Moment) -> Found:
        """The rows at a moment."""
        tag = self.tag(name, as_of)
        self._check_moment(moment)
        rows = self._find(tag, moment, None)
        if self.payload_types is None:
            return Found(tag.revision, {row[0]: row for row in rows})
        return Found(tag.revision, _Rows(rows, self._check_type))

    def look_up(
        self, name: str, moment: Moment, *, strict: bool = False, types: Iterable[str] = (), as_of: AsOf | None = None
    ) -> list[Row]:
        """The rows of a lookup, by payload type in byte order. Without `types`, they are all that the snapshot has."""
        tag = self.tag(name, as_of)
        self._check_moment(moment)
        return [row for row in self._find(tag, moment, self._chosen(types)) if not strict or self._end(row) > moment]

    def window(
        self, name: str, moment: Moment, *, strict: bool = False, types: Iterable[str] = ()
    ) -> tuple[Moment, Moment]:
        """An interval around the moment, inside that of the snapshot, in which `look_up` returns the same: its first moment and
        its end as the service writes it."""
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
        asked = {"tag": tag.id, "major": moment.major, "minor": moment.minor, "types": chosen}
        with self.read() as database:
            [(text,)] = database.execute(NEXT, asked)
        ends += [Moment(*start) for start in json.loads(f"[{text or ''}]")]
        return max(starts), wire_end(min(ends), self.mode)

    def range(
        self,
        names: Sequence[str],
        states: Sequence[AsOf | None],
        since: Moment | None,
        until: Moment | None,
        types: Sequence[str],
    ) -> Iterator[dict[str, Any]]:
        """The elements of the service's `payload-iovs/range`. Without `since` or `until`, the window is that of the snapshot."""
        tags, chosen = [self.tag(name, as_of) for name, as_of in zip(names, states, strict=True)], self._chosen(types)
        since, until = since or self.since, until or self.until
        end = exclusive_end(until, self.mode)
        if end <= since:
            raise InputError(f"The end of a window must be after its beginning (got {since} and {until}).")
        self._check_moment(since)
        if end > exclusive_end(self.until, self.mode):
            self._outside(f"no IOVs up to {until}; its window is {self.since} up to {self.until}")
        return self._elements(tags, since, end, chosen)

    def _elements(
        self, tags: Sequence[SnapshotTag], since: Moment, end: Moment, chosen: str | None
    ) -> Iterator[dict[str, Any]]:
        # The last moment of the window, whatever the mode.
        last = wire_end(end, "discrete")
        asked = {"major": since.major, "minor": since.minor, "last_major": last.major, "last_minor": last.minor}
        for payload_type in sorted({one for tag in tags for one in self._lists[tag.id]}):
            if chosen is not None and payload_type not in json.loads(chosen):
                continue
            only, parts = json.dumps([payload_type]), list[_Part]()
            for tag in tags:
                rows = [row for row in self._find(tag, since, only) if self._end(row) > since]
                with self.read() as database:
                    found = database.execute(RANGE, asked | {"tag": tag.id, "types": only}).fetchall()
                rows += [json.loads(text) for (text,) in found]
                parts = _overlaid(parts, list(self._parts(tag.name, rows, since, end)))
            for part in parts:
                yield {
                    **({"global_tag": part.tag} if len(tags) > 1 else {}),
                    "payload_type": payload_type,
                    **dict(zip(COLUMNS[1:], part.row[1:], strict=True)),
                    "since": list(part.since),
                    "until": list(wire_end(part.end, self.mode)),
                }

    def _parts(self, tag: str, rows: list[Row], since: Moment, end: Moment) -> Iterator[_Part]:
        starts = [Moment(row[4], row[5]) for row in rows]
        for row, start, following in zip(rows, starts, [*starts[1:], end], strict=False):
            yield _Part(tag, row, max(start, since), min(self._end(row), following, end))

    def _find(self, tag: SnapshotTag, moment: Moment, chosen: str | None) -> list[Row]:
        asked = {"tag": tag.id, "major": moment.major, "minor": moment.minor, "types": chosen}
        with self.read() as database:
            [(text,)] = database.execute(FIND, asked)
        return sorted(json.loads(f"[{text or ''}]"), key=itemgetter(0))

    def _end(self, row: Row) -> Moment:
        return exclusive_end(Moment(row[6], row[7]), self.mode)

    def _chosen(self, types: Iterable[str]) -> str | None:
        """Payload types as a JSON array, for statements; None for all."""
        chosen = sorted(set(types))
        for name in chosen:
            if name not in self._known:
                raise NotFoundError(f"There is no payload type {name!r} in the snapshot {self.path}.")
            self._check_type(name)
        return json.dumps(chosen) if chosen else None

    def _check_type(self, name: str) -> None:
        if self.payload_types is not None and name in self._known and name not in self.payload_types:
            self._outside(f"no IOVs of the payload type {name!r}; it has {', '.join(self.payload_types)}")

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


def _overlaid(upper: list[_Part], lower: list[_Part]) -> list[_Part]:
    """All parts of `upper`, and of `lower` what is outside of them. Both are in order and without overlaps."""
    found, place = list(upper), 0
    for part in lower:
        since = part.since
        while place < len(upper) and upper[place].end <= since:
            place += 1
        while place < len(upper) and upper[place].since < part.end:
            if since < upper[place].since:
                found.append(part._replace(since=since, end=upper[place].since))
            since = upper[place].end
            if since > part.end:
                # It may also cover the next one.
                break
            place += 1
        if since < part.end:
            found.append(part._replace(since=since))
    return sorted(found, key=attrgetter("since"))


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
