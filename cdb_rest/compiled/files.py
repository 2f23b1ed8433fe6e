"""The open files of a compiled tag, memory-mapped."""

import contextlib
import mmap
import os
import tokenize
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cdb_rest.compiled.manifest import UnusableError

# Sizes and times of the files: they change with every write to a file, and with its deletion.
Signature = tuple[tuple[int, int, int], ...]
READ_BYTES = 2**21
# Linux: map all pages of a range that are in the memory. Python has no name for it.
MADV_POPULATE_READ = 22


class OpenFiles:
    """Files of one directory, which stay open as long as the object exists.

    `sizes` are their expected sizes in bytes, by name. Raises `UnusableError` if a file has another one, or `OSError`.
    """

    def __init__(self, path: Path, sizes: Mapping[str, int]) -> None:
        self._path = path
        self._files: list[int] = []
        # With the last reference, because other threads may still read when the registry drops the compiled tag.
        weakref.finalize(self, _close, self._files)
        for name, size in sizes.items():
            self._files.append(os.open(path / name, os.O_RDONLY))
            if os.fstat(self._files[-1]).st_size != size:
                raise UnusableError(f"{name} does not have its size")
        self._signature = self._signature_now()
        self._maps: list[mmap.mmap] = []

    def array(self, name: str) -> npt.NDArray[Any]:
        """The array in a file, memory-mapped. Raises `UnusableError`."""
        try:
            mapped = np.load(self._path / name, mmap_mode="r", allow_pickle=False)
        # numpy parses the header as Python does, so that a damaged one may cause other errors than ValueError.
        except (ValueError, OSError, SyntaxError, tokenize.TokenError) as error:
            raise UnusableError(f"{name} cannot be read: {error}") from error
        self._maps.append(mapped._mmap)
        # A lookup reads single numbers of the arrays. Reading ahead would fill the memory with others.
        mapped._mmap.madvise(mmap.MADV_RANDOM)
        # As a plain array: the operations of memmap objects are slower.
        return np.asarray(mapped)

    def content(self, name: str) -> mmap.mmap:
        """The bytes of a file, memory-mapped. Raises `OSError`."""
        with (self._path / name).open("rb") as file:
            self._maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        return self._maps[-1]

    def load(self) -> None:
        """Read all files, so that lookups do not wait for the disk. Other threads can work meanwhile. Raises `OSError`."""
        for file in self._files:
            position = 0
            while piece := os.pread(file, READ_BYTES, position):
                position += len(piece)
        with contextlib.suppress(OSError):
            # Linux before 5.14 does not know it; then each page is mapped when it is first used.
            for one in self._maps:
                for position in range(0, len(one), READ_BYTES):
                    one.madvise(MADV_POPULATE_READ, position, min(READ_BYTES, len(one) - position))

    def are_intact(self) -> bool:
        """Whether the files are as they were when they were opened: not written to, truncated or deleted."""
        return self._signature_now() == self._signature

    def _signature_now(self) -> Signature:
        return tuple(
            (found.st_size, found.st_mtime_ns, found.st_ctime_ns) for found in (os.fstat(file) for file in self._files)
        )


def _close(files: Iterable[int]) -> None:
    for file in files:
        os.close(file)
