"""Payload files: the cache of files for all processes of a user, and directories of files."""

import fcntl
import hashlib
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cdb_client import errors
from cdb_client.config import Config
from cdb_client.downloads import PART, Downloads, digest_of, relative_path
from cdb_client.payload import PayloadIOV
from cdb_client.transport import Transport

# Files that are downloaded at the same time by `fetch_all`.
THREADS = 8
# Files that were used so recently stay in the cache: a process may just have got their path.
RECENT_SECONDS = 3600.0
# The end of the names of locks.
LOCK = ".lock"


class Files:
    """Gets the payload files of IOVs. It can be used by several threads and processes at once.

    Of each file in the cache, size and checksum are verified again once by each process (`Downloads` says how). If the cache
    cannot be written, a directory for temporary files takes its place. `setting` returns a public setting of the service.
    """

    def __init__(self, config: Config, setting: Callable[[str], Any]) -> None:
        self._config = config
        self._downloads = Downloads(config, setting)
        self._lock = threading.Lock()
        # Bytes that were added since the last time that the cache was limited; so many that the first download does it.
        self._added = float("inf")

    def fetch(self, iov: PayloadIOV) -> Path:
        """The path of the verified file in the cache; it is downloaded if it is not there.

        Raises `DataError` for a wrong file, its subclass `MissingFileError`, `UnavailableError`, `NotAllowedError`, and
        `InputError` if the address or the cache cannot be used.
        """
        return self._fetch(iov, threading.Event())

    def fetch_all(
        self,
        iovs: Iterable[PayloadIOV],
        progress: Callable[[int, int], None] | None = None,
        *,
        directory: Path | None = None,
    ) -> list[Path]:
        """The paths of the files of many IOVs, in their order: in the cache, or as `download` into a directory.

        Several are downloaded at a time. `progress` gets the number of files done, and of all. Raises the first error; then no
        further file is downloaded.
        """
        wanted, stop = list(iovs), threading.Event()

        def get(iov: PayloadIOV) -> Path:
            return self._fetch(iov, stop) if directory is None else self._download(iov, directory, stop)

        with ThreadPoolExecutor(THREADS, thread_name_prefix="cdb-files") as executor:
            try:
                futures = [executor.submit(get, iov) for iov in wanted]
                for done, future in enumerate(as_completed(futures), 1):
                    future.result()
                    if progress:
                        progress(done, len(wanted))
            except BaseException:
                stop.set()
                executor.shutdown(cancel_futures=True)
                raise
        return [future.result() for future in futures]

    def download(self, iov: PayloadIOV, directory: Path) -> Path:
        """The path of the verified file in a directory, below which it has the path of its URL.

        A file that is there and right stays. It is copied from the cache if it is there. Raises the errors of `fetch`.
        """
        return self._download(iov, directory, threading.Event())

    def _fetch(self, iov: PayloadIOV, stop: threading.Event) -> Path:
        found = self._cached(iov, stop)
        if found:
            return found
        folder = self._folder
        try:
            return self._into_cache(iov, folder, stop)
        except OSError as error:
            if folder == _fallback():
                raise errors.InputError(f"The payload file {iov.url} cannot be stored: {error}") from None
            self._folder = _fallback()
            Transport.announce(f"payload files cannot be stored in the cache ({error}); using {self._folder}")
            return self._into_cache(iov, self._folder, stop)

    def _download(self, iov: PayloadIOV, directory: Path, stop: threading.Event) -> Path:
        target = directory / relative_path(iov.url)
        try:
            if self._downloads.is_right(target, iov, stop) and digest_of(iov):
                return target
            target.parent.mkdir(parents=True, exist_ok=True)
            cached = self._cached(iov, stop)
            self._downloads.get(iov, str(cached) if cached else self._downloads.address(iov), target, stop)
        except OSError as error:
            raise errors.InputError(f"{target} cannot be written: {error}") from None
        return target

    @cached_property
    def _folder(self) -> Path:
        return self._config.cache / "files" if self._config.cache else _fallback()

    def _cached(self, iov: PayloadIOV, stop: threading.Event) -> Path | None:
        path = self._folder / self._name(iov)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        except OSError:
            # A cache that cannot be written can be read.
            pass
        return path if self._downloads.is_right(path, iov, stop) else None

    def _into_cache(self, iov: PayloadIOV, folder: Path, stop: threading.Event) -> Path:
        path = folder / self._name(iov)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Processes that want the same file wait for the first one. As few locks as two digits have values stay for ever.
        with _locked(folder / f"{path.name[:2]}{LOCK}"):
            if self._downloads.is_right(path, iov, stop):
                return path
            self._downloads.get(iov, self._downloads.address(iov), path, stop)
        with suppress(OSError):
            self._limit(folder, path.stat().st_size)
        return path

    def _name(self, iov: PayloadIOV) -> str:
        digest = digest_of(iov)
        # Adler-32 has too few digits to identify a file.
        if digest is None or digest[0] == "adler32":
            text = "\n".join((self._downloads.address(iov), iov.checksum, str(iov.size), str(iov.revision)))
            digest = ("sha256", hashlib.sha256(text.encode()).hexdigest())
        base = re.sub(r"[^A-Za-z0-9._+=-]", "_", urlsplit(iov.url).path.rpartition("/")[2])
        return f"{digest[1]}-{base[-100:]}"

    def _limit(self, folder: Path, added: int) -> None:
        """Remove the files that were not used for the longest time, and what interrupted downloads have left."""
        with self._lock:
            self._added += added
            # The first download of a process, and then now and then.
            if self._added < self._config.cache_size / 20:
                return
            self._added = 0.0
        found = []
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime, path.stat().st_size, path))
        total, recent = sum(size for _, size, _ in found), time.time() - RECENT_SECONDS
        for used, size, path in sorted(found):
            if used > recent or path.suffix == LOCK or (total <= self._config.cache_size and path.suffix != PART):
                continue
            with suppress(FileNotFoundError):
                # Another process may have used it meanwhile.
                if path.stat().st_mtime == used:
                    path.unlink()
                    total -= size


def _fallback() -> Path:
    """The directory for files where the cache cannot be used. It must be this user's alone, because others could change files."""
    path = Path(tempfile.gettempdir()) / f"cdb-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise errors.InputError(f"There is no place for payload files: {error}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise errors.InputError(f"There is no place for payload files: {path} can be written by others.")
    return path / "files"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Inside the block, no other process or thread has this lock. The system releases the lock of a process that ends."""
    with path.open("w") as file:
        # Without locks, as on some network file systems, a file may be downloaded twice.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
