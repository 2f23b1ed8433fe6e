"""Packs: files that have the rows of payload lists, and the arrays to find them.

A pack has, in this order: the rows of its lists as JSON arrays, as in the response of a lookup, list by list and by start; the
arrays; a header in JSON; the length of the header, and a checksum of everything before it. The arrays, in this order:

- `majors`, `minors`, `major_ends`, `minor_ends`: the IOV of each row, as in the tables.
- `offsets`: where each row begins, and the end of the last one.
- `first`: the number of the first row of each list, and the number of all rows.
- `merged_majors`, `merged_minors`: the starts of all rows in their order; no minors if all are 0.
- `lists`: the position of the list of each of these starts.
- `counts`: for every `block`-th of these starts, how many rows before it each list has. So the number of rows up to a moment in
  every list takes one binary search, one row of `counts`, and a count of the positions in a part of a block.
"""

import json
import logging
import mmap
import os
import struct
import time
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

import numpy as np
from django.conf import settings

from cdb_rest.compiled.state import ListKey
from cdb_rest.rules.intervals import Integers, Intervals, Moments
from cdb_rest.rules.moment import Mode, Moment

logger = logging.getLogger(__name__)
# It changes when other code would read the files in another way; then they are deleted.
FORMAT = 3
# The length of the header, and the checksum.
END = struct.Struct("<QI")
# In the name of a file that is being written, which takes less than this time.
NEW, ABANDONED_SECONDS = ".new-", 7200


class UnusableError(Exception):
    """A pack is damaged or of another format. The message is one line."""


class Pack:
    """An open pack: a memory-mapped file, which all processes of a host share. Threads may share it.

    Its lists are identified by their positions. The constructor trusts the contents of the file, which `verify` checks. Raises
    `UnusableError` or `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY)
        # With the last reference, because other threads may still read when the registry drops the pack.
        weakref.finalize(self, os.close, self._file)
        self._signature = self._now()
        self.size = self._signature[0]
        try:
            self.content = mmap.mmap(self._file, 0, prot=mmap.PROT_READ)
            length, self._checksum = END.unpack_from(self.content, self.size - END.size)
            self.header = json.loads(self.content[self.size - END.size - length : self.size - END.size])
            if self.header["format"] != FORMAT:
                raise UnusableError("it has another format")
            self.database: str = self.header["database"]
            self.positions = {ListKey(*key): position for position, key in enumerate(self.header["lists"])}
            *self._iovs, self._offsets, self.first, self._majors, minors, self._lists, self._counts = (
                np.ndarray(shape, kind, self.content, offset) for kind, shape, offset in self.header["arrays"]
            )
        except (ValueError, TypeError, KeyError, AttributeError, struct.error) as error:
            raise UnusableError(f"it cannot be read: {error}") from error
        # Many tags use only the major number. Then half of the search is left out.
        self._minors = minors if len(minors) else None
        self._block: int = self.header["block"]
        self.rows = len(self._lists)

    def verify(self) -> None:
        """Compare the file with its checksum. Then all of it is in memory, as long as there is enough. Raises `UnusableError`."""
        if zlib.crc32(memoryview(self.content)[:-4]) != self._checksum or not self.is_intact():
            raise UnusableError("it is damaged")

    def is_intact(self) -> bool:
        """Whether the file is as it was when it was opened: not written to, truncated or deleted."""
        return self._now() == self._signature

    def _now(self) -> tuple[int, int, int]:
        found = os.fstat(self._file)
        return found.st_size, found.st_mtime_ns, found.st_nlink

    def note_use(self) -> None:
        """Store as the time of the file's last access that it is used. Raises `OSError`."""
        os.utime(self._file, ns=(time.time_ns(), os.fstat(self._file).st_mtime_ns))

    def last_use(self) -> float:
        """When it was used last, in seconds."""
        return os.fstat(self._file).st_atime

    def starts_until(self, moment: Moment) -> Integers:
        """For each list, the number of its rows that start at or before the moment."""
        end = self._majors.searchsorted(moment.major, "right")
        if self._minors is not None:
            begin = self._majors.searchsorted(moment.major, "left")
            end = begin + self._minors[begin:end].searchsorted(moment.minor, "right")
        block = end // self._block
        counted = np.bincount(self._lists[block * self._block : end], minlength=len(self.positions))
        found: Integers = self._counts[block] + counted
        return found

    def texts(self, numbers: Integers) -> list[bytes]:
        """The rows with these numbers as JSON arrays."""
        # `take` is faster than an index.
        begins, ends = self._offsets.take(numbers).tolist(), self._offsets.take(numbers + 1).tolist()
        content = self.content
        return [content[begin:end] for begin, end in zip(begins, ends, strict=True)]

    def starts(self, numbers: Integers) -> Moments:
        """The starts of the rows with these numbers."""
        majors, minors, _, _ = self._iovs
        return Moments(majors.take(numbers), minors.take(numbers))

    def intervals(self, numbers: Integers, mode: Mode) -> Intervals:
        """The intervals of the rows with these numbers."""
        _, _, majors, minors = self._iovs
        return Intervals.from_wire(self.starts(numbers), Moments(majors.take(numbers), minors.take(numbers)), mode)


def root() -> Path:
    """The directory of the packs of this host. It need not exist."""
    return Path(settings.CDB_COMPILED_DIR) / "packs"


def paths() -> list[Path]:
    """The files of all packs, damaged ones too."""
    return sorted(root().glob("*.pack"))


def readable_packs() -> list[Pack]:
    """The packs of this host, which are not verified. Raises `OSError`."""
    found = []
    for path in paths():
        with suppress(UnusableError, FileNotFoundError):
            found.append(Pack(path))
    return found


class OpenPacks(dict[str, Pack]):
    """The packs of this host that this process has open, by the names of their files."""

    def refresh(self) -> bool:
        """Open new packs, close those that are gone, and delete damaged ones. Returns whether it did. Raises `OSError`."""
        names = {path.name for path in paths()}
        gone = [name for name, pack in self.items() if name not in names or not pack.is_intact()]
        for name in gone:
            del self[name]
        added = names - self.keys()
        for name in added:
            with suppress(FileNotFoundError):
                try:
                    pack = Pack(root() / name)
                    pack.verify()
                    self[name] = pack
                except UnusableError as error:
                    self.remove(name, str(error))
        return bool(gone or added)

    def remove(self, name: str, reason: str) -> None:
        """Delete a pack, and log why. Processes that have it open stop using it. Raises `OSError`."""
        logger.info("compiled lists in %s are deleted: %s", name, reason)
        self.pop(name, None)
        (root() / name).unlink(missing_ok=True)


@contextmanager
def new_file() -> Iterator[IO[bytes]]:
    """A file for a new pack, which appears as a whole when the block ends, on the disk. Raises `OSError`."""
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile(prefix=NEW, dir=root(), delete=False) as file:
        path = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            path.rename(root() / f"{path.name.removeprefix(NEW)}.pack")
        finally:
            path.unlink(missing_ok=True)


def remove_abandoned() -> None:
    """Delete the files of processes that were killed while they wrote them. Raises `OSError`."""
    for path in root().glob(f"{NEW}*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                path.unlink()
