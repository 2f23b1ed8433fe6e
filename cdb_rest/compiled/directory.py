"""The compiled tags of this host: a directory for each under CDB_COMPILED_DIR, which the processes of all instances share.

A new one is written elsewhere and then renamed, so that a directory is always complete. Its *seal* records the inode, size and
times of each file after their contents have been verified. While they are the same, the file has not been written to, and
processes trust the contents without reading them. A seal is valid until the machine is started again: only then may a disk
have lost data.
"""

import contextlib
import fcntl
import json
import mmap
import os
import shutil
import tempfile
import tokenize
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings

from cdb_rest.compiled.manifest import FILES, MANIFEST, Manifest, UnusableError, directory_name, read_manifest, sum_of

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
            for mapped in self._maps:
                for position in range(0, len(mapped), READ_BYTES):
                    mapped.madvise(MADV_POPULATE_READ, position, min(READ_BYTES, len(mapped) - position))

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


SEAL = "seal.json"
BOOT = Path("/proc/sys/kernel/random/boot_id")
# In the name of a directory that is being written. The process that writes it has a lock on it.
NEW = ".new-"


def root() -> Path:
    """The directory of the compiled tags. It need not exist."""
    return Path(settings.CDB_COMPILED_DIR) / "tags"


def paths() -> list[Path]:
    """The directories of all compiled tags, damaged ones too."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(path for path in root().iterdir() if not path.name.startswith(NEW))
    return []


@contextlib.contextmanager
def new() -> Iterator[Path]:
    """A new directory for files, inside the block. Afterwards it is deleted if it was not added.

    Raises `OSError`.
    """
    path, lock = _create()
    try:
        yield path
    finally:
        os.close(lock)
        shutil.rmtree(path, ignore_errors=True)


def _create() -> tuple[Path, int]:
    """A new directory, and a descriptor that has a lock on it."""
    root().mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        path = Path(tempfile.mkdtemp(prefix=NEW, dir=root()))
        lock = os.open(path, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have deleted it as an abandoned one before it was locked.
        if path.exists():
            return path, lock
        os.close(lock)


def remove_abandoned() -> None:
    """Delete the directories of processes that were killed while they wrote them."""
    for path in root().glob(f"{NEW}*"):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


def add(path: Path, manifest: Manifest) -> Path:
    """Add the compiled tag in a directory of `new`, instead of the one with the same key. Returns its directory.

    The data is on the disk when the function returns. Raises `OSError`.
    """
    (path / MANIFEST).write_bytes(manifest.to_json())
    for name in (*FILES, MANIFEST):
        _synchronize(path / name)
    target = root() / directory_name(manifest)
    with contextlib.suppress(OSError):
        # Only if exactly this state was compiled before.
        remove(target)
    _seal(path)
    path.rename(target)
    _synchronize(root())
    for other in paths():
        if other != target and key_of(other) == manifest.key:
            remove(other)
    return target


def key_of(path: Path) -> tuple[int, int | None] | None:
    """The key of the compiled tag in a directory; None if it is damaged or gone."""
    try:
        return read_manifest(path).key
    except (UnusableError, OSError):
        return None


def remove(path: Path) -> None:
    """Delete a compiled tag. Processes that have it open may go on reading it.

    Raises `OSError`.
    """
    # First the name, so that no process opens a half of it.
    gone = path.with_name(f"{NEW}gone-{path.name}-{os.getpid()}")
    path.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def seals() -> dict[str, int]:
    """The names of the directories with a seal, each with a number that differs for another seal. Raises `OSError`."""
    found = {}
    for path in paths():
        with contextlib.suppress(FileNotFoundError):
            found[path.name] = (path / SEAL).stat().st_ino
    return found


def is_sealed(path: Path) -> bool:
    """Whether the contents of the files have been verified, and the files have not been written to since then."""
    try:
        return bool(json.loads((path / SEAL).read_bytes()) == _identity(path))
    except (OSError, ValueError):
        return False


def verify(path: Path) -> Manifest:
    """Compare the contents of all files with their checksums, and seal them.

    Raises `UnusableError`, also if a file is missing, or `OSError`.
    """
    try:
        before = _identity(path)
        manifest = read_manifest(path)
        for name in FILES:
            if name not in manifest.files or sum_of(path / name) != manifest.files[name]:
                raise UnusableError(f"{name} is damaged")
        _seal(path)
        if _identity(path) != before:
            raise UnusableError("it was written to while it was verified")
    except FileNotFoundError as error:
        # Perhaps it was deleted meanwhile.
        raise UnusableError("it is not complete") from error
    return manifest


def _seal(path: Path) -> None:
    with tempfile.NamedTemporaryFile("w", dir=path, delete=False) as file:
        json.dump(_identity(path), file)
    Path(file.name).rename(path / SEAL)


def _identity(path: Path) -> list[object]:
    """What identifies the files as those that were verified, in the form in which JSON returns it."""
    found: list[object] = [BOOT.read_text().strip() if BOOT.exists() else ""]
    for name in (*FILES, MANIFEST):
        file = (path / name).stat()
        found.append([name, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns])
    return found


def _synchronize(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
