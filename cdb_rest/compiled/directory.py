"""The compiled tags of this host: a directory for each under CDB_COMPILED_DIR, which the processes of all instances share.

A new one is written elsewhere and then renamed, so that a directory is always complete. Its *seal* records the inode, size and
times of each file after their contents have been verified. While they are the same, the file has not been written to, and
processes trust the contents without reading them. A seal is valid until the machine is started again: only then may a disk
have lost data.
"""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from cdb_rest.compiled.manifest import FILES, MANIFEST, Manifest, UnusableError, directory_name, read_manifest, sum_of

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
