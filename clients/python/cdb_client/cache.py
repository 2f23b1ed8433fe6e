"""The cache of lookups on disk: one SQLite file, shared by all processes of a user.

It is only a cache: without a writable directory, on a full disk or with a damaged file, the client works without it, and says so
in one line. Each stretch belongs to one version of a tag, so that a process never uses the stretch of another version.
"""

import fcntl
import json
import math
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TypeVar, cast

from cdb_client.contents import State, Stretch
from cdb_client.moments import Moment
from cdb_client.transport import Transport

# If the machine crashes, the file may be damaged; then it is created again.
SCHEMA = """
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS stretch (
    key TEXT, version TEXT, since TEXT, until TEXT, data BLOB NOT NULL, PRIMARY KEY (key, since, until, version)
);
"""
LONGEST = """
SELECT data FROM stretch WHERE key = ?1 AND ?2 IN ('', version) AND since <= ?3 AND until > ?3 ORDER BY until DESC LIMIT 1
"""
# Other versions, and stretches inside of the new one.
OLD = "DELETE FROM stretch WHERE key = ?1 AND (version <> ?2 OR (since >= ?3 AND until <= ?4))"
BUSY_SECONDS = 10.0
# A process that waits longer for another one that asks the same asks itself.
LOCK_SECONDS, LOCKS = 10.0, 16
# A larger file is emptied.
LARGEST_BYTES = 1_000_000_000
# Errors of SQLite that say that the file is damaged or has other tables; 0 is an error of Python's module, for example if text
# is damaged.
DAMAGED = (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

T = TypeVar("T")


class Cache:
    """The cache in a directory, or with None no cache. One thread uses it at a time.

    No method raises an error of the file system or of SQLite.
    """

    def __init__(self, directory: Path | None) -> None:
        self._path = directory / "lookups.sqlite3" if directory else None
        self._file: sqlite3.Connection | None = None
        self._inherited: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._is_announced = False

    def close(self) -> None:
        """Close the file."""
        if self._file and self._process == os.getpid():
            self._file.close()
            self._file = None

    def find(self, key: str, version: str, moment: Moment) -> tuple[State, Stretch] | None:
        """The stored stretch with a moment, of this version of the tag or, if it is empty, of any."""

        def find(file: sqlite3.Connection) -> tuple[State, Stretch] | None:
            found = file.execute(LONGEST, [key, version, _text(moment)]).fetchone()
            if found is None:
                return None
            stored, state, stretch = _decode(found[0])
            # What SQLite compares has no checksum.
            if stored != key or version not in ("", state.version) or not stretch.since <= moment < stretch.until:
                raise ValueError("a stretch is not where it belongs")
            return state, stretch

        return self._run(find)

    def store(self, key: str, state: State, stretch: Stretch) -> None:
        """Store a stretch; what belongs to other versions is deleted."""

        def store(file: sqlite3.Connection) -> None:
            row = [key, state.version, _text(stretch.since), _text(stretch.until)]
            data = _encode(key, state, stretch)
            with file:
                file.execute("BEGIN IMMEDIATE")
                file.execute(OLD, row)
                file.execute("INSERT OR REPLACE INTO stretch VALUES (?, ?, ?, ?, ?)", [*row, data])
            path = cast(Path, self._path)
            if not path.exists():
                # Another process has removed it.
                self.close()
            elif path.stat().st_size > LARGEST_BYTES:
                _clear(file)

        self._run(store)

    def clear(self) -> None:
        """Delete all stretches, also while other processes use the file."""
        self._run(_clear)

    def locked(self, key: str) -> AbstractContextManager[None]:
        """Wait until no other process asks about the tag, so that it need not be asked twice; a few seconds at most."""
        if self._path is None:
            return nullcontext()
        return locked(self._path.with_name(f"lookups.{zlib.crc32(key.encode()) % LOCKS}.lock"), LOCK_SECONDS)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of `work` with the file; None if that is not possible. A damaged file is removed."""
        if self._path is None:
            return None
        try:
            return work(self._open(self._path))
        except (OSError, sqlite3.Error, zlib.error, ValueError, TypeError) as error:
            self.close()
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR if isinstance(error, OSError) else 0) & 0xFF
            reason = str(error).partition("\n")[0]
            if code in DAMAGED:
                self._remove(self._path)
                self._announce(f"The cache {self._path} is created again: {reason}.")
            elif code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._announce(f"The cache {self._path} cannot be used: {reason}. The client works without it.")
            return None

    def _open(self, path: Path) -> sqlite3.Connection:
        if self._process != os.getpid():
            # A child process must neither use nor close the connection of its parent.
            self._inherited, self._file, self._process = self._file, None, os.getpid()
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self._file.executescript(SCHEMA)
        return self._file

    def _remove(self, path: Path) -> None:
        self.close()
        with suppress(OSError):
            # A journal that is left would be applied to the new file.
            path.with_name(path.name + "-journal").unlink(missing_ok=True)
            path.unlink(missing_ok=True)

    def _announce(self, message: str) -> None:
        if not self._is_announced:
            self._is_announced = True
            Transport.announce(message)


@contextmanager
def locked(path: Path, seconds: float = math.inf) -> Iterator[None]:
    """Inside the block, no other process or thread has the lock of this file. After `seconds`, the block begins without it.

    It begins at once where no locks are possible, as in a read-only directory or on some network file systems.
    """
    with ExitStack() as stack:
        with suppress(OSError):
            file, until = stack.enter_context(path.open("w")), time.monotonic() + seconds
            while not _lock(file.fileno()) and time.monotonic() < until:
                time.sleep(0.01)
            # To close the file is not enough: a child process may have it open, too.
            stack.callback(fcntl.flock, file.fileno(), fcntl.LOCK_UN)
        yield


def _clear(file: sqlite3.Connection) -> None:
    file.execute("DELETE FROM stretch")
    file.execute("VACUUM")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text(moment: Moment) -> str:
    # SQLite has no integer that is larger than 2^63-1. As text of a fixed width, moments have their order.
    return f"{moment.major:019}{moment.minor:019}"


def _encode(key: str, state: State, stretch: Stretch) -> bytes:
    base = stretch.body or json.dumps(stretch.base).encode()
    about = [state.version, state.revision, state.mode, state.is_immutable, state.moment, state.etag, state.checked]
    header = json.dumps([key, about, stretch.since, stretch.until, len(base)]).encode()
    # zlib adds a checksum. To compress the rows of one lookup takes longer than to read them.
    return zlib.compress(
        b"".join((header, b"\n", base, json.dumps(stretch.changes).encode())), 1 if stretch.changes else 0
    )


def _decode(data: bytes) -> tuple[str, State, Stretch]:
    header, _, rest = zlib.decompress(data).partition(b"\n")
    key, (version, revision, mode, is_immutable, moment, etag, checked), since, until, size = json.loads(header)
    state = State(version, revision, mode, is_immutable, Moment(*moment), etag, checked)
    return key, state, Stretch(Moment(*since), Moment(*until), json.loads(rest[:size]), json.loads(rest[size:]))
