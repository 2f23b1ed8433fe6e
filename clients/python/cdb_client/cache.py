"""The cache of lookups on disk: one SQLite file, shared by all processes of a user.

It is only a cache: without a writable directory, on a full disk or with a damaged file, the client works without it, and says so
in one line. Each stretch belongs to one version of a tag, so that a process never uses the stretch of another version.
"""

import fcntl
import json
import logging
import os
import random
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from cdb_client.contents import Stretch, pack, unpack
from cdb_client.moments import Moment
from cdb_client.sources import Item

SCHEMA_VERSION = 1
SCHEMA = (
    "CREATE TABLE tag (key TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE stretch (id INTEGER PRIMARY KEY, key TEXT, version TEXT, since TEXT, until TEXT, data BLOB NOT NULL)",
    "CREATE INDEX stretch_of_tag ON stretch (key, version, since)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
LONGEST = """
SELECT data FROM stretch WHERE key = ? AND version = ? AND since <= ?3 AND until > ?3 ORDER BY until DESC LIMIT 1
"""
BUSY_SECONDS = 10.0
# A process that waits longer for another one that asks the same asks itself.
LOCK_SECONDS = 10.0
LOCKS = 64
# A larger file loses the older half of its stretches.
LARGEST_BYTES = 1_000_000_000
# Errors of SQLite that say that the file is damaged or has other tables; 0 is an error of Python's module, for example if text
# is damaged.
DAMAGED = (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

logger = logging.getLogger("cdb_client")
T = TypeVar("T")


class Cache:
    """The cache in a directory, or with None no cache. No method raises an error of the file system or of SQLite."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._path = directory / "lookups.sqlite3" if directory else None
        self._can_write = True
        self._connection: sqlite3.Connection | None = None
        self._inherited: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._inode = 0
        self._lock = threading.Lock()

    def tag(self, key: str) -> Item | None:
        """What is stored of a tag."""
        found = self._run(lambda file: file.execute("SELECT data FROM tag WHERE key = ?", [key]).fetchone(), None)
        return self._decoded(lambda: dict(json.loads(unpack(found[0])))) if found else None

    def stretch(self, key: str, version: str, moment: Moment) -> Stretch | None:
        """The stored stretch with a moment, of this version of the tag."""
        values = [key, version, _text(moment)]
        found = self._run(lambda file: file.execute(LONGEST, values).fetchone(), None)

        def decode() -> Stretch:
            own, stretch = Stretch.decode(found[0])
            # Only the encoded values have a checksum.
            if own != version or not stretch.since <= moment < stretch.until:
                raise ValueError("a stretch has other bounds")
            return stretch

        return self._decoded(decode) if found else None

    def store(self, key: str, tag: Item, stretch: Stretch | None = None) -> None:
        """Store what is known of a tag, and a stretch; what belongs to other versions is deleted."""
        if self._path is None or not self._can_write:
            return
        version = tag["version"]
        data = pack(json.dumps(tag).encode())
        content = stretch.encode(version) if stretch else b""

        def write(file: sqlite3.Connection) -> None:
            file.execute("BEGIN IMMEDIATE")
            file.execute(
                "INSERT INTO tag VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET data = excluded.data", [key, data]
            )
            file.execute("DELETE FROM stretch WHERE key = ? AND version <> ?", [key, version])
            if stretch:
                bounds = [key, version, _text(stretch.since), _text(stretch.until)]
                file.execute("DELETE FROM stretch WHERE key = ? AND version = ? AND since >= ? AND until <= ?", bounds)
                file.execute(
                    "INSERT INTO stretch (key, version, since, until, data) VALUES (?, ?, ?, ?, ?)", [*bounds, content]
                )
                pages, free, size = (
                    file.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("page_count", "freelist_count", "page_size")
                )
                if (pages - free) * size > LARGEST_BYTES:
                    file.execute("DELETE FROM stretch WHERE id <= (SELECT (min(id) + max(id)) / 2 FROM stretch)")
            file.execute("COMMIT")

        self._run(write, None)

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Wait until no other process asks about the tag, so that it need not be asked twice; a few seconds at most."""
        descriptor = None
        if self._directory and self._can_write:
            with suppress(OSError):
                folder = self._directory / "locks"
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(folder / f"{zlib.crc32(key.encode()) % LOCKS}", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            until = time.monotonic() + LOCK_SECONDS
            while descriptor is not None and time.monotonic() < until:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(random.uniform(0.005, 0.02))  # noqa: S311 -- no secret
                except OSError:
                    break
                else:
                    break
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._disconnect()

    def _run(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """The result of `work` with the file, or `otherwise`. A damaged file is made anew."""
        if self._path is None:
            return otherwise
        with self._lock:
            for _ in range(2):
                try:
                    return work(self._connected(self._path))
                except (sqlite3.Error, OSError) as error:
                    if self._connection is not None and self._connection.in_transaction:
                        self._connection.rollback()
                    code = getattr(error, "sqlite_errorcode", None if isinstance(error, OSError) else 0)
                    if code is not None and code & 0xFF in DAMAGED:
                        self._remove(str(error))
                    elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                        return otherwise
                    else:
                        self._warn(error)
                        return otherwise
        return otherwise

    def _connected(self, path: Path) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        # A child process must not use the connection of its parent, nor close it.
        self._inherited, self._connection, self._process = self._connection, None, os.getpid()
        path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._inode = path.stat().st_ino
            # If the machine crashes, the file may be damaged. Then it is made anew.
            file.execute("PRAGMA synchronous = OFF")
            if file.execute("PRAGMA user_version").fetchone()[0] == 0:
                # A row of a lookup has 30 kB.
                file.execute("PRAGMA page_size = 16384")
                file.execute("BEGIN IMMEDIATE")
                if file.execute("PRAGMA user_version").fetchone()[0] == 0:
                    for statement in SCHEMA:
                        file.execute(statement)
                file.execute("COMMIT")
            if (version := file.execute("PRAGMA user_version").fetchone()[0]) != SCHEMA_VERSION:
                raise sqlite3.DatabaseError(f"it has version {version} instead of {SCHEMA_VERSION}")
        except BaseException:
            file.close()
            raise
        self._connection = file
        return file

    def _disconnect(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            self._connection.close()
        self._connection = None

    def _remove(self, reason: str) -> None:
        """Delete the file, unless another process has done so since it was opened."""
        self._disconnect()
        if self._path is None:
            return
        with suppress(OSError), self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._path.stat().st_ino == self._inode:
                # A journal that is left would be applied to the new file.
                self._path.with_name(self._path.name + "-journal").unlink(missing_ok=True)
                self._path.unlink()
                logger.warning("The cache %s is made anew: %s.", self._path, reason.partition("\n")[0])

    def _decoded(self, decode: Callable[[], T]) -> T | None:
        """What was stored, or None if it is damaged; then the file is made anew."""
        try:
            return decode()
        except (ValueError, TypeError) as error:
            with self._lock:
                self._remove(str(error))
            return None

    def _warn(self, error: Exception) -> None:
        if self._can_write:
            reason = str(error).partition("\n")[0]
            logger.warning("The cache %s cannot be used: %s. The client works without it.", self._path, reason)
        self._can_write = False
        if self._connection is None:
            self._path = None


def _text(moment: Moment) -> str:
    # SQLite has no integer that is larger than 2^63-1. As text of a fixed width, moments have their order.
    return f"{moment.major:019}{moment.minor:019}"
