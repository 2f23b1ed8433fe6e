"""Payload files: the cache of files for all processes of a user, and directories of files."""

import hashlib
import itertools
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from cdb_client import errors
from cdb_client.cache import locked
from cdb_client.config import Config
from cdb_client.downloads import SCHEME, digest_of, download, is_right, relative_path, remove_unfinished
from cdb_client.payload import PayloadIOV
from cdb_client.transport import Transport

# Files that are downloaded at the same time.
THREADS = 8
# Files that were used so recently stay in the cache: a process may just have got their path.
RECENT_SECONDS = 3600.0
# The cache is limited at the first download of a process, and then after so many.
DOWNLOADS = 100
# The end of the names of locks.
LOCK = ".lock"


class Files:
    """Gets the payload files of IOVs. It can be used by several threads and processes at once.

    Payloads without a scheme are below CDB_PAYLOAD_BASE_URL, unless the configuration has another base, which may also be a
    directory; `setting` returns a public setting of the service. The errors are `DataError` for a wrong or missing file,
    `NotAllowedError`, `UnavailableError`, and `InputError` if an address, the cache or a directory cannot be used.
    """

    def __init__(self, config: Config, setting: Callable[[str], Any]) -> None:
        self._config, self._setting = config, setting
        self._folder = config.cache / "files" if config.cache else None
        # Paths that this process has verified.
        self._verified: set[Path] = set()
        self._count = itertools.count()

    def fetch(self, iov: PayloadIOV) -> Path:
        """The path of the verified file in the cache; it is downloaded if it is not there."""
        try:
            if self._folder:
                try:
                    return self._fetch(iov, self._folder)
                except OSError as error:
                    self._folder = None
                    Transport.announce(f"payload files are not kept, because the cache cannot be used: {error}")
            return self._fetch(iov, Path(_temporary_folder().name))
        except OSError as error:
            raise errors.InputError(f"The payload file {iov.url} cannot be stored: {error}") from None

    def download(
        self, iovs: Iterable[PayloadIOV], directory: Path, progress: Callable[[int, int], None] = lambda *_: None
    ) -> list[Path]:
        """The paths of the verified files of IOVs in a directory, below which they have the paths of their URLs.

        Files that are there and right stay. `progress` gets the number of files done, and of all. Raises the first error; then
        no further file is downloaded.
        """
        wanted, paths, stop = list(iovs), [], threading.Event()
        targets: dict[Path, PayloadIOV] = {}
        for iov in wanted:
            other = targets.setdefault(directory / relative_path(iov.url), iov)
            if (other.url, other.checksum, other.size) != (iov.url, iov.checksum, iov.size):
                raise errors.DataError(
                    f"The payload files {other.url} and {iov.url} would have the same name in {directory}."
                )

        def get(iov: PayloadIOV) -> Path:
            target = directory / relative_path(iov.url)
            try:
                if not (digest_of(iov) and is_right(target, iov)):
                    address = self._address(iov)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    download(iov, address, target, self._config.retry_for, stop)
            except OSError as error:
                raise errors.InputError(f"{target} cannot be written: {error}") from None
            return target

        executor = ThreadPoolExecutor(THREADS)
        try:
            for path in executor.map(get, wanted):
                paths.append(path)
                progress(len(paths), len(wanted))
        except BaseException as error:
            stop.set()
            # After Ctrl-C, threads whose server says nothing are not waited for.
            executor.shutdown(wait=isinstance(error, Exception), cancel_futures=True)
            remove_unfinished()
            raise
        executor.shutdown()
        return paths

    def _fetch(self, iov: PayloadIOV, folder: Path) -> Path:
        path = folder / self._name(iov)
        if self._is_cached(path, iov):
            return path
        folder.mkdir(parents=True, exist_ok=True)
        # Processes that want the same file wait for the first one. As few locks as two digits have values stay for ever.
        with locked(folder / f"{path.name[:2]}{LOCK}", self._config.retry_for):
            if not self._is_cached(path, iov):
                download(iov, self._address(iov), path, self._config.retry_for, threading.Event())
                self._verified.add(path)
                if next(self._count) % DOWNLOADS == 0:
                    self._limit(folder)
        return path

    def _is_cached(self, path: Path, iov: PayloadIOV) -> bool:
        # The time of the last use. A cache that cannot be written can be read.
        with suppress(OSError):
            os.utime(path)
        if path.is_file() and (path in self._verified or is_right(path, iov)):
            self._verified.add(path)
            return True
        return False

    def _address(self, iov: PayloadIOV) -> str:
        """The URL of a payload file, or its URL or path below the base."""
        if SCHEME.match(iov.url):
            return iov.url
        relative_path(iov.url)
        base = self._config.payload_base or self._setting("CDB_PAYLOAD_BASE_URL")
        if not base:
            raise errors.InputError(
                f"The payload {iov.url} is relative, and the service has no CDB_PAYLOAD_BASE_URL: set this environment variable "
                f"to the base URL or directory of payload files. ({self._config.server})"
            )
        # In a path, the characters that end the path of a URL have no meaning.
        url = quote(iov.url, safe="/%!$&'()*+,;=:@~") if SCHEME.match(base) else iov.url
        return f"{base.rstrip('/')}/{url.lstrip('/')}"

    def _name(self, iov: PayloadIOV) -> str:
        name, digits = digest_of(iov) or ("adler32", "")
        # Adler-32 has too few digits to identify a file.
        if name == "adler32":
            text = "\n".join((self._address(iov), iov.checksum, str(iov.size), str(iov.revision)))
            digits = hashlib.sha256(text.encode()).hexdigest()
        base = re.sub(r"[^A-Za-z0-9._+=-]", "_", urlsplit(iov.url).path.rpartition("/")[2])
        return f"{digits}-{base[-100:]}"

    def _limit(self, folder: Path) -> None:
        """Remove the files that were not used for the longest time."""
        found = []
        for path in folder.iterdir():
            with suppress(FileNotFoundError):
                found.append((path.stat().st_mtime, path.stat().st_size, path))
        total, recent = sum(size for _, size, _ in found), time.time() - RECENT_SECONDS
        for used, size, path in sorted(found):
            if used > recent or total <= self._config.cache_size:
                break
            if path.suffix != LOCK:
                path.unlink(missing_ok=True)
                total -= size


@cache
def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    """The directory for files where there is no cache, or it cannot be used. It is removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="cdb-", ignore_cleanup_errors=True)
