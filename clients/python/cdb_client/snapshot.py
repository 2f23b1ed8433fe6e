"""Creation and verification of snapshots (`cdb_client.snapshot_file`).

A snapshot is made in `FILE.part`, beside FILE, one payload type in a transaction. If the creation is interrupted, the next one
with the same arguments continues it, at the revisions that the first one has recorded.
"""

import csv
import json
import random
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from cdb_client import __version__
from cdb_client.errors import CdbError, DataError, InputError, NotFoundError, UnavailableError
from cdb_client.moments import FIRST, OPEN, Moment, exclusive_end
from cdb_client.payload import COLUMNS
from cdb_client.snapshot_file import (
    APPLICATION_ID,
    BATCH,
    SCHEMA_VERSION,
    ContentsChecksum,
    SnapshotFile,
    check_format,
    contents_checksum,
    meta_checksum,
    stored_checksum,
)
from cdb_client.transport import FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, Query, Transport, segment

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tag (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, document TEXT NOT NULL, newest_until TEXT
);
CREATE TABLE list (
    id INTEGER PRIMARY KEY, tag INTEGER NOT NULL REFERENCES tag, payload_type TEXT NOT NULL, name TEXT NOT NULL,
    rows INTEGER, checksum TEXT, UNIQUE (tag, payload_type)
);
CREATE TABLE prefix (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE iov (
    list INTEGER NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL, major_end INTEGER NOT NULL,
    minor_end INTEGER NOT NULL, prefix INTEGER NOT NULL, rest TEXT NOT NULL, checksum NOT NULL, size INTEGER NOT NULL,
    revision TEXT, PRIMARY KEY (list, major, minor)
) WITHOUT ROWID;
INSERT INTO prefix VALUES (0, '');
"""
# The public settings of the service.
SETTINGS = ("CDB_IOV_MODE", "CDB_PAYLOAD_BASE_URL", "CDB_MAX_BODY_BYTES")
HEADER = ["payload_type", *COLUMNS[1:], "mode"]
# Further directories are not stored once; so the memory is limited.
MAX_PREFIXES = 50_000
CHUNK_BYTES = 2**17

Progress = Callable[[int, int], None]


def create(
    transport: Transport,
    path: str | Path,
    tags: Sequence[str],
    *,
    revs: Sequence[int | None] = (),
    at: str | datetime | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    types: Collection[str] | None = None,
    restart: bool = False,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Create the snapshot `path` of the global tags, and return what `info` does.

    Each tag is read at one revision: that of `revs`, which has one for each tag, or the newest one at the time `at`, or the
    present one. `since` and `until` (as the service writes ends) are the window, and `types` the payload types, all by default.
    `restart` discards what an interrupted creation has left. `progress` is called with the number of IOVs that are stored, and
    the number of IOVs of the tags, of which a snapshot of a window or of some types has fewer.

    Raises a subclass of `CdbError`; then `path` does not exist.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    if not tags or len(set(tags)) < len(tags) or (revs and (at is not None or len(revs) != len(tags))):
        raise InputError("A snapshot needs different tags, and either one revision for each of them, or a time.")
    if path.exists():
        raise InputError(f"{path} exists already. Delete it, or choose another name.")
    if restart:
        for file in (part, part.with_name(part.name + "-journal")):
            file.unlink(missing_ok=True)
    arguments = {
        "service": transport.config.server,
        "tags": sorted([name, rev] for name, rev in zip(tags, revs or [None] * len(tags), strict=True)),
        "at": at.isoformat() if isinstance(at, datetime) else at,
        "since": since,
        "until": until,
        "payload_types": sorted(set(types)) if types is not None else None,
    }
    try:
        with closing(sqlite3.connect(part, timeout=1, isolation_level=None)) as database:
            creation = _Creation(transport, database, part)
            creation.begin(json.loads(json.dumps(arguments)))
            creation.fill(progress)
            creation.finish()
        part.rename(path)
    except (sqlite3.Error, OSError) as error:
        raise (InputError if isinstance(error, OSError | sqlite3.OperationalError) else DataError)(
            f"{part} cannot be written: {error}. If it is damaged, delete it, or use --restart."
        ) from None
    return info(path)


def info(path: str | Path) -> dict[str, Any]:
    """What a snapshot contains: service, time, window, payload types, checksum, and the revision and numbers of each tag."""
    found = SnapshotFile(path)
    with found.read() as database:
        counts = {
            tag: {"payload_lists": lists, "payload_iovs": iovs}
            for tag, lists, iovs in database.execute("SELECT tag, count(*), sum(rows) FROM list GROUP BY tag")
        }
    none = {"payload_lists": 0, "payload_iovs": 0}
    tags = [found.tag(one["name"]) for one in found.tags()]
    shown = ("service", "created", "client", "mode", "since", "until", "payload_types", "checksum")
    return {
        "path": str(path),
        "bytes": Path(path).stat().st_size,
        "schema_version": SCHEMA_VERSION,
        **{name: found.meta[name] for name in shown},
        "tags": [{"name": tag.name, "revision": tag.revision, **counts.get(tag.id, none)} for tag in tags],
    }


def verify(path: str | Path, progress: Progress = lambda done, total: None) -> dict[str, Any]:
    """Check the whole file and compute its checksums again. Returns what `info` does, or raises `DataError`."""
    found = SnapshotFile(path)
    with found.read() as database:
        _check_integrity(database, path)
        lists = database.execute(
            """SELECT list.id, tag.name, payload_type, rows, list.checksum FROM list JOIN tag ON tag.id = list.tag"""
        ).fetchall()
        total, done = sum(one[3] for one in lists), 0
        for number, tag, payload_type, rows, checksum in lists:
            stored = stored_checksum(database, number)
            if (stored.rows, str(stored)) != (rows, checksum):
                raise DataError(f"The snapshot {path} is damaged: IOVs of payload type {payload_type} of tag {tag}.")
            done += rows
            progress(done, total)
        [(iovs,)] = database.execute("SELECT count(*) FROM iov")
        computed = (contents_checksum(database), meta_checksum(database), iovs)
        if computed != (found.meta["checksum"], found.meta["meta_checksum"], total):
            raise DataError(f"The snapshot {path} is damaged: its checksum does not match.")
    return info(path)


def _check_integrity(database: sqlite3.Connection, path: str | Path) -> None:
    [(result,), *_] = database.execute("PRAGMA integrity_check(1)").fetchall()
    if result != "ok":
        raise DataError(f"The snapshot {path} is damaged: {result}".replace("\n", " "))


class _Creation:
    """The creation of a snapshot in an open database."""

    def __init__(self, transport: Transport, database: sqlite3.Connection, part: Path) -> None:
        self._transport = transport
        self._database = database
        self._part = part
        self._prefixes: dict[str, int] = {}
        # The rows of the lookup at the beginning of the window, by tag and payload type.
        self._first: dict[str, dict[str, list[Any]]] = {}

    def begin(self, arguments: Mapping[str, Any]) -> None:
        """Record the arguments and the revisions, or check that the file was begun with these arguments."""
        # Another process that writes the same file gets an error.
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA cache_size = -65536")
        try:
            self._database.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise InputError(f"Another process is writing {self._part}, or it cannot be written ({error}).") from None
        is_new = False
        try:
            is_new = not self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if is_new:
                self._database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                for statement in SCHEMA.split(";"):
                    self._database.execute(statement)
                self._record(arguments)
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            if is_new:
                self._part.unlink()
            raise
        advice = f"Delete {self._part}, or use --restart."
        try:
            check_format(self._database, self._part)
        except DataError as error:
            raise InputError(f"{error} {advice}") from None
        self._meta = {name: json.loads(value) for name, value in self._database.execute("SELECT name, value FROM meta")}
        if self._meta["arguments"] != arguments:
            raise InputError(f"{self._part} is an unfinished snapshot that was begun with other arguments. {advice}")
        if not is_new:
            for name, revision, document in self._database.execute("SELECT name, revision, document FROM tag"):
                if self._document(name, revision) != document:
                    raise InputError(
                        f"Revision {revision} of tag {name} was another when {self._part} was begun. {advice}"
                    )
        self._read_prefixes()

    def _record(self, arguments: Mapping[str, Any]) -> None:
        transport, types = self._transport, arguments["payload_types"]
        settings: dict[str, Any] = {}
        for name in SETTINGS:
            with suppress(NotFoundError):
                settings |= transport.get(f"user_settings/{name}").json()
        mode = settings["CDB_IOV_MODE"]
        since, until = arguments["since"], arguments["until"]
        if exclusive_end(Moment(*(until or OPEN)), mode) <= Moment(*(since or FIRST)):
            raise InputError(f"The end of a window must be after its beginning (got {since} and {until}).")
        meta = {
            **arguments,
            "arguments": arguments,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "client": __version__,
            "mode": mode,
            "settings": settings,
            "types": transport.get("pt").json(),
            "statuses": transport.get("gtstatus").json(),
        }
        del meta["tags"], meta["at"]
        self._database.executemany(
            "INSERT INTO meta VALUES (?, ?)", [(name, json.dumps(value)) for name, value in meta.items()]
        )
        known = {one["name"] for one in meta["types"]}
        for name, rev in arguments["tags"]:
            known |= self._record_tag(name, rev, arguments["at"], types)
        for name in types or ():
            if name not in known:
                raise NotFoundError(f"There is no payload type {name!r} ({transport.config.server}).")

    def _record_tag(self, name: str, rev: int | None, at: str | None, types: Collection[str] | None) -> set[str]:
        """Record a tag at one revision, and return the payload types of its lists."""
        until, about = None, f"tag {name}"
        if rev is None:
            asked = [("light", "1"), *([("at", at)] if at else [])]
            response = self._transport.get(f"globalTag/{segment(name)}", asked, about=about)
            rev = int(response.json()["revision"])
            date = response.headers.get("date")
            until = at or (parsedate_to_datetime(date).isoformat() if date else None)
        lists = self._transport.get(f"gtPayloadLists/{segment(name)}", [("rev", str(rev))], about=about).json()
        columns = (name, rev, self._document(name, rev), until)
        tag = self._database.execute(
            "INSERT INTO tag (name, revision, document, newest_until) VALUES (?, ?, ?, ?)", columns
        )
        self._database.executemany(
            "INSERT INTO list (tag, payload_type, name) VALUES (?, ?, ?)",
            [(tag.lastrowid, *one) for one in sorted(lists.items()) if types is None or one[0] in types],
        )
        return set(lists)

    def _document(self, name: str, revision: int) -> str:
        """The item of a tag at a revision, as the service sends it."""
        query = [("light", "1"), ("rev", str(revision))]
        return self._transport.get(f"globalTag/{segment(name)}", query, about=f"tag {name}").body.decode()

    def fill(self, progress: Progress) -> None:
        """Store the IOVs of the lists that are not stored yet."""
        done = self._database.execute("SELECT coalesce(sum(rows), 0) FROM list").fetchone()[0]
        total = sum(
            json.loads(document)["payload_iov_count"]
            for (document,) in self._database.execute("SELECT document FROM tag")
        )
        progress(done, total)
        for number, tag, revision in self._database.execute("SELECT id, name, revision FROM tag").fetchall():
            found = self._database.execute(
                "SELECT payload_type, id FROM list WHERE tag = ? AND checksum IS NULL ORDER BY payload_type", (number,)
            )
            lists = dict(found.fetchall())
            # A query string cannot name these payload types: then the whole tag is read.
            unnamed = {name: number for name, number in lists.items() if not name or "," in name}
            groups = [{name: number} for name, number in lists.items() if name not in unnamed]
            for group in [*groups, *([unnamed] if unnamed else [])]:
                query = [("format", "csv"), ("rev", str(revision))]
                query += [("payloadType", next(iter(group)))] if group is not unnamed else []
                query += [(name, "{},{}".format(*self._meta[name])) for name in ("since", "until") if self._meta[name]]
                done += self._store_with_retries(tag, revision, group, query, lambda rows: progress(done + rows, total))  # noqa: B023
                progress(done, total)

    def _store_with_retries(
        self, tag: str, revision: int, group: Mapping[str, int], query: Query, progress: Callable[[int], None]
    ) -> int:
        wait, failing_since, allowed = FIRST_WAIT_SECONDS, None, self._transport.config.retry_for
        about = f"tag {tag}, payload type {', '.join(group)}"
        while True:
            self._database.execute("BEGIN")
            try:
                rows = self._store(tag, revision, group, query, progress)
                self._database.execute("COMMIT")
            except HTTPError as error:
                self._roll_back()
                failing_since = failing_since or time.monotonic()
                pause = random.SystemRandom().uniform(0, wait)
                if time.monotonic() + pause - failing_since > allowed:
                    raise UnavailableError(
                        f"The connection broke again and again ({error}); gave up after {allowed:g} s. Create the snapshot "
                        f"again, which continues it ({self._transport.config.server}, {about})."
                    ) from None
                self._transport.announce(f"the connection broke ({error}); trying again for {allowed:g} s")
                time.sleep(pause)
                wait = min(2 * wait, LONGEST_WAIT_SECONDS)
            except BaseException:
                self._roll_back()
                raise
            else:
                return rows

    def _roll_back(self) -> None:
        # After some errors, such as a full disk, SQLite has done it.
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")
        self._read_prefixes()

    def _read_prefixes(self) -> None:
        self._prefixes = dict(self._database.execute("SELECT text, id FROM prefix"))

    def _store(
        self, tag: str, revision: int, group: Mapping[str, int], query: Query, progress: Callable[[int], None]
    ) -> int:
        """Store the IOVs of some lists of a tag, and return their number. It must be called in a transaction."""
        checksums = {name: ContentsChecksum() for name in group}
        first = self._first_rows(tag, revision)
        about = f"tag {tag}, payload type {', '.join(group)}"
        with self._transport.stream(f"global-tags/{segment(tag)}/export", query, about=about) as response:
            reader = _Reader(response)
            if reader.header != HEADER:
                raise CdbError(f"The export has other columns ({self._transport.config.server}, {about}).")
            for name, rows in groupby(reader.rows(), itemgetter(0)):
                if name not in group:
                    continue
                self._insert(group[name], checksums[name], first.pop(name, None), rows, progress)
        for name, number in group.items():
            if name in first:
                self._insert(number, checksums[name], first[name], iter(()), progress)
            self._database.execute(
                "UPDATE list SET rows = ?, checksum = ? WHERE id = ?",
                (checksums[name].rows, str(checksums[name]), number),
            )
        return sum(checksum.rows for checksum in checksums.values())

    def _first_rows(self, tag: str, revision: int) -> dict[str, list[Any]]:
        """The rows of a lookup at the beginning of the window, by payload type.

        The export of a window has those that are valid there. A lookup that is not strict also returns those that have ended.
        """
        if not self._meta["since"]:
            return {}
        if tag not in self._first:
            major, minor = map(str, self._meta["since"])
            query = [("gtName", tag), ("majorIOV", major), ("minorIOV", minor), ("rev", str(revision))]
            rows = self._transport.get("payloadiovs/", query, about=f"tag {tag}").json()
            self._first[tag] = {row[0]: [*map(_text, row), self._meta["mode"]] for row in rows}
        return dict(self._first[tag])

    def _insert(
        self,
        number: int,
        checksum: ContentsChecksum,
        first: list[Any] | None,
        rows: Iterator[list[Any]],
        progress: Callable[[int], None],
    ) -> None:
        """Store the rows of a list, as the export has them, and before them `first`, unless it is among them."""
        start = first[4:6] if first else None
        is_begun = first is None
        while batch := list(islice(rows, BATCH)):
            if not is_begun:
                batch, is_begun = ([] if batch[0][4:6] == start else [first]) + batch, True  # type: ignore[assignment]
            self._insert_batch(number, checksum, batch)
            progress(checksum.rows)
        if not is_begun:
            self._insert_batch(number, checksum, [first])  # type: ignore[list-item]

    def _insert_batch(self, number: int, checksum: ContentsChecksum, batch: list[list[Any]]) -> None:
        stored, logical = [], []
        for _, url, digest, size, major, minor, major_end, minor_end, revision, _ in batch:
            moments = (int(major), int(minor), int(major_end), int(minor_end))
            prefix, rest = self._split(url)
            bytes_ = int(size)
            logical.append((*moments, url, digest, bytes_, revision))
            stored.append((number, *moments, prefix, rest, _packed(digest), bytes_, revision))
        checksum.add(logical)
        self._database.executemany("INSERT INTO iov VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", stored)

    def _split(self, url: str) -> tuple[int, str]:
        """The number of the directory of a URL, and what follows it."""
        directory, slash, rest = url.rpartition("/")
        directory += slash
        number = self._prefixes.get(directory)
        if number is None:
            if len(self._prefixes) > MAX_PREFIXES:
                return 0, url
            number = len(self._prefixes)
            self._database.execute("INSERT OR REPLACE INTO prefix VALUES (?, ?)", (number, directory))
            self._prefixes[directory] = number
        return number, rest

    def finish(self) -> None:
        """Add the checksums, and check the file."""
        self._database.execute("BEGIN")
        for name, compute in (("checksum", contents_checksum), ("meta_checksum", meta_checksum)):
            value = json.dumps(compute(self._database))
            self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
        self._database.execute("COMMIT")
        _check_integrity(self._database, self._part)


class _Reader:
    """The header and the rows of an export in CSV that is being received."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._line = ""
        self._reader = csv.reader(self._lines(), strict=True)
        self.header = next(self._reader, None)

    def rows(self) -> Iterator[list[Any]]:
        """The rows as lists of texts; the revision may be None."""
        for row in self._reader:
            # The revision is the last but one column. Without quotes, it is null.
            if row[8] == "" and not self._line.rpartition(",")[0].endswith('""'):
                row[8] = None  # type: ignore[call-overload]
            yield row

    def _lines(self) -> Iterator[str]:
        rest = b""
        for chunk in self._response.stream(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._line = line.decode() + "\n"
                yield self._line
        if rest:
            raise CdbError("The export ends in the middle of a line.")


def _packed(checksum: str) -> str | bytes:
    """A checksum in lower-case hexadecimal as bytes, any other as it is."""
    try:
        found = bytes.fromhex(checksum)
    except ValueError:
        return checksum
    return found if found and found.hex() == checksum else checksum


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
