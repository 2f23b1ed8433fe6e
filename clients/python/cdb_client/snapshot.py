"""Creation and verification of snapshots (`cdb_client.snapshot_file`).

A snapshot is made in `FILE.part`, beside FILE, one payload list in a transaction. If the creation is interrupted, the next one
with the same arguments continues it, at the revisions that the first one has recorded.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from urllib3.exceptions import HTTPError

from cdb_client import __version__
from cdb_client.errors import DataError, InputError, NotFoundError
from cdb_client.moments import FIRST, OPEN, Moment, end_of_window
from cdb_client.snapshot_file import APPLICATION_ID, ROW, SCHEMA_VERSION, SnapshotFile, check_format
from cdb_client.sources import Item
from cdb_client.transport import Query, Retries, Transport, segment

SCHEMA = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE snapshot (
    service TEXT NOT NULL, created TEXT NOT NULL, client TEXT NOT NULL, document TEXT NOT NULL, checksum TEXT
);
CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL, document TEXT NOT NULL);
CREATE TABLE list (
    id INTEGER PRIMARY KEY, tag INTEGER NOT NULL REFERENCES tag, payload_type TEXT NOT NULL, name TEXT NOT NULL,
    rows INTEGER, UNIQUE (tag, payload_type)
);
CREATE TABLE iov (
    list INTEGER NOT NULL, major INTEGER NOT NULL, minor INTEGER NOT NULL, major_end INTEGER NOT NULL,
    minor_end INTEGER NOT NULL, url TEXT NOT NULL, checksum TEXT NOT NULL, size INTEGER NOT NULL, revision TEXT,
    PRIMARY KEY (list, major, minor)
) WITHOUT ROWID;
"""
INSERT = """INSERT INTO iov VALUES (
    :list, :major_iov, :minor_iov, :major_iov_end, :minor_iov_end, :payload_url, :checksum, :size, :revision
)"""
# All that decides the answers of a snapshot, in an order that does not depend on how it was made.
CONTENTS = (
    "SELECT document FROM snapshot",
    "SELECT name, revision, document FROM tag ORDER BY name",
    """SELECT tag.name, payload_type, list.name, rows FROM list JOIN tag ON tag.id = list.tag
    ORDER BY tag.name, payload_type""",
    f"SELECT list, {ROW} FROM iov JOIN list ON list.id = iov.list ORDER BY list, major, minor",  # noqa: S608 -- constants
)
BATCH = 1000

Progress = Callable[[int, int], None]


def create(
    transport: Transport,
    path: str | Path,
    tags: Mapping[str, int | None],
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    types: Collection[str] | None = None,
    restart: bool = False,
    progress: Progress = lambda done, total: None,
) -> Item:
    """Create the snapshot `path` of global tags, each at the revision given or the present one, and return what `info` does.

    `since` and `until` (as the service writes ends) are the window, and `types` the payload types, all by default. `restart`
    discards what an interrupted creation has left. `progress` is called with the number of payload lists that are stored, and
    of all.

    Raises a subclass of `CdbError`; then `path` does not exist.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    if path.exists():
        raise InputError(f"{path} exists already. Delete it, or choose another name.")
    asked: Item = {
        "since": since and list(since),
        "until": until and list(until),
        "payload_types": sorted(set(types)) if types else None,
    }
    try:
        if restart:
            for file in (part, part.with_name(part.name + "-journal")):
                file.unlink(missing_ok=True)
        # So a request that fails leaves no file.
        new = None if part.exists() else (_document(transport, asked), _tags(transport, tags))
        with closing(sqlite3.connect(part, timeout=1)) as database:
            # Another process that writes the same file gets an error.
            database.executescript("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT")
            if new:
                _begin(database, transport.config.server, *new)
            else:
                _check_same(transport, database, part, asked, tags)
            _fill(transport, database, progress)
            with database:
                database.execute("UPDATE snapshot SET checksum = ?", (_checksum(database),))
        part.rename(path)
    except (sqlite3.Error, OSError) as error:
        raise InputError(f"{part} cannot be written: {error}. If it is damaged, use --restart.") from None
    return info(path)


def info(path: str | Path) -> Item:
    """What a snapshot contains: service, time, window, payload types, checksum, and the revision and numbers of each tag."""
    found = SnapshotFile(path)
    with found.read() as database:
        tags = database.execute(
            """SELECT tag.name, revision, count(list.id), coalesce(sum(rows), 0)
            FROM tag LEFT JOIN list ON list.tag = tag.id GROUP BY tag.name"""
        ).fetchall()
    return {
        "path": str(path),
        "bytes": found.path.stat().st_size,
        "schema_version": SCHEMA_VERSION,
        "service": found.service,
        "created": found.created,
        "client": found.client,
        "mode": found.mode,
        **{name: found.document[name] for name in ("since", "until", "payload_types")},
        "checksum": found.checksum,
        "tags": [dict(zip(("name", "revision", "payload_lists", "payload_iovs"), tag, strict=True)) for tag in tags],
    }


def verify(path: str | Path) -> Item:
    """Check the whole file and compute its checksum again. Returns what `info` does, or raises `DataError`."""
    found = SnapshotFile(path)
    with found.read() as database:
        [(result,), *_] = database.execute("PRAGMA integrity_check(1)").fetchall()
        if result != "ok" or _checksum(database) != found.checksum:
            raise DataError(f"The snapshot {path} is damaged: its contents do not match its checksum.")
    return info(path)


def _checksum(database: sqlite3.Connection) -> str:
    digest = sha256()
    for statement in CONTENTS:
        cursor = database.execute(statement)
        while rows := cursor.fetchmany(BATCH):
            digest.update(json.dumps(rows).encode())
    return digest.hexdigest()


def _document(transport: Transport, asked: Item) -> Item:
    """What is recorded of the service. Raises an error if it does not have what was asked for."""
    settings = [transport.get(f"user_settings/{name}").json() for name in ("CDB_IOV_MODE", "CDB_PAYLOAD_BASE_URL")]
    types = transport.get("pt").json()
    document = asked | {
        "settings": settings[0] | settings[1],
        "types": types,
        "statuses": transport.get("gtstatus").json(),
    }
    since, until = Moment(*asked["since"] or FIRST), Moment(*asked["until"] or OPEN)
    end_of_window(since, until, document["settings"]["CDB_IOV_MODE"])
    for name in asked["payload_types"] or ():
        if all(name != known["name"] for known in types):
            raise NotFoundError(f"There is no payload type {name!r} ({transport.config.server}).")
    return document


def _tags(transport: Transport, tags: Mapping[str, int | None]) -> list[tuple[str, int, str, str]]:
    """Name, revision, item and payload lists of tags, in the order of their names."""
    found = []
    for name, asked in sorted(tags.items()):
        item, about = f"globalTag/{segment(name)}", f"tag {name}"
        rev = int(transport.get(item, [("light", "1")], about=about).json()["revision"]) if asked is None else asked
        query = [("light", "1"), ("rev", str(rev))]
        lists = transport.get(f"gtPayloadLists/{segment(name)}", query[1:], about=about).body.decode()
        found.append((name, rev, transport.get(item, query, about=about).body.decode(), lists))
    return found


def _begin(
    database: sqlite3.Connection, service: str, document: Item, tags: Iterable[tuple[str, int, str, str]]
) -> None:
    with database:
        database.executescript(SCHEMA)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        columns = (service, created, __version__, json.dumps(document))
        database.execute("INSERT INTO snapshot VALUES (?, ?, ?, ?, NULL)", columns)
        for name, revision, item, lists in tags:
            insert = "INSERT INTO tag (name, revision, document) VALUES (?, ?, ?)"
            tag = database.execute(insert, (name, revision, item)).lastrowid
            database.executemany(
                "INSERT INTO list (tag, payload_type, name) VALUES (?, ?, ?)",
                [
                    (tag, *one)
                    for one in sorted(json.loads(lists).items())
                    if document["payload_types"] is None or one[0] in document["payload_types"]
                ],
            )


def _check_same(
    transport: Transport, database: sqlite3.Connection, part: Path, asked: Item, tags: Mapping[str, int | None]
) -> None:
    """Raise an error unless the file was begun with these arguments, and the tags are still the same at its revisions."""
    advice = f"Delete {part}, or use --restart."
    try:
        check_format(database, part)
    except DataError as error:
        raise InputError(f"{error} {advice}") from None
    [(service, text)] = database.execute("SELECT service, document FROM snapshot")
    stored = database.execute("SELECT name, revision, document FROM tag ORDER BY name").fetchall()
    document, revisions = json.loads(text), {name: revision for name, revision, _ in stored}
    is_same = service == transport.config.server and document == document | asked
    is_same &= tags.keys() == revisions.keys() and all(rev in (None, revisions[name]) for name, rev in tags.items())
    if not is_same:
        raise InputError(f"{part} is an unfinished snapshot that was begun with other arguments. {advice}")
    # A database that was created again may have the same revision with other contents.
    if [tag[:3] for tag in _tags(transport, revisions)] != stored:
        raise InputError(f"The tags of {part} have changed at their revisions since it was begun. {advice}")


def _fill(transport: Transport, database: sqlite3.Connection, progress: Progress) -> None:
    """Store the IOVs of the lists that are not stored yet."""
    [(text,)] = database.execute("SELECT document FROM snapshot")
    document = json.loads(text)
    since = Moment(*document["since"] or FIRST)
    window = [(name, "{},{}".format(*document[name])) for name in ("since", "until") if document[name]]
    done, total = database.execute("SELECT count(rows), count(*) FROM list").fetchone()
    progress(done, total)
    for tag, name, revision in database.execute("SELECT id, name, revision FROM tag").fetchall():
        state = [("rev", str(revision))]
        moment = [("majorIOV", str(since.major)), ("minorIOV", str(since.minor)), ("shape", "dict")]
        found = transport.get("payloadiovs/", [("gtName", name), *moment, *state], about=f"tag {name}").json()
        first = {row["payload_type_name"]: row for row in found}
        for number, payload_type in database.execute(
            "SELECT id, payload_type FROM list WHERE tag = ? AND rows IS NULL", (tag,)
        ).fetchall():
            _store(transport, database, (number, name, payload_type), [*state, *window], first.get(payload_type), since)
            done += 1
            progress(done, total)


def _store(
    transport: Transport,
    database: sqlite3.Connection,
    payload_list: tuple[int, str, str],
    query: Query,
    first: Item | None,
    since: Moment,
) -> None:
    """Store the IOVs of a list: the row that a lookup at `since` returns, and those that start later."""
    number, tag, payload_type = payload_list
    about = f"tag {tag}, payload type {payload_type}"
    query = [("format", "jsonl"), *query]
    # Of a tag with a payload type that a query string cannot name, all IOVs are read.
    query += [("payloadType", payload_type)] if payload_type and "," not in payload_type else []

    def rows(lines: Iterable[bytes]) -> Iterator[Item]:
        if first:
            yield {**first, "list": number}
        for line in lines:
            row = json.loads(line)
            if row["payload_type"] == payload_type and (row["major_iov"], row["minor_iov"]) > since:
                yield {**row, "list": number}

    retries = Retries(transport.config.retry_for, f"{transport.config.server}, {about}")
    while True:
        try:
            with database, transport.stream(f"global-tags/{segment(tag)}/export", query, about=about) as response:
                stored = database.executemany(INSERT, rows(response)).rowcount
                database.execute("UPDATE list SET rows = ? WHERE id = ?", (stored, number))
                return
        except HTTPError as error:
            retries.pause(error)
