"""Payload files: their addresses, downloads that are verified, and a cache of files for all processes of a user."""

import fcntl
import hashlib
import os
import re
import stat
import tempfile
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, LocationValueError, SSLError

from cdb_client import errors
from cdb_client.config import Config
from cdb_client.payload import PayloadIOV
from cdb_client.transport import CONNECT_SECONDS, RETRIED, Retries, Transport, make_pool, reason_of, retry_after

CHUNK_BYTES = 2**20
NOT_STORED = "It was not stored."
# Longer than a pause of a file server that reads from tape is not awaited.
READ_SECONDS = 60.0
# Files that are downloaded at the same time by `fetch_all`.
THREADS = 8
# Files that were used so recently stay in the cache; a process may just have got their path.
RECENT_SECONDS = 3600.0
# The ends of the names of unfinished downloads and of locks.
PART, LOCK = ".part", ".lock"
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# Checksums by the number of their hexadecimal digits, and by prefix.
ALGORITHMS = {8: "adler32", 32: "md5", 40: "sha1", 64: "sha256"}
PREFIXES = {"md5": 32, "sha1": 40, "sha256": 64, "adler32": 8, "ad": 8}
CHECKSUM = re.compile(r"(?:([a-z0-9]+):)?([0-9a-f]+)")


class Files:
    """Gets the payload files of IOVs. It can be used by several threads and processes at once.

    `setting` returns a public setting of the service: payloads without a scheme are below CDB_PAYLOAD_BASE_URL, unless the
    configuration has another base, which may also be a directory. Size and checksum are verified as far as an IOV has them; of a
    checksum in an unknown form, nothing is verified. The checksum of a cached file is verified again by each process.
    """

    def __init__(self, config: Config, setting: Callable[[str], Any]) -> None:
        self._config, self._setting = config, setting
        self._base = config.payload_base
        self._pools: dict[str, urllib3.PoolManager] = {}
        self._verified: set[Path] = set()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._unlimited = float("inf")

    def fetch(self, iov: PayloadIOV) -> Path:
        """The path of the verified file in the cache; it is downloaded if it is not there.

        Raises `DataError` for a wrong file, its subclass `MissingFileError`, `UnavailableError`, `NotAllowedError`, and
        `InputError` if the address or the cache cannot be used.
        """
        found = self._cached(iov)
        if found:
            return found
        folder = self._cache_folder()
        try:
            return self._into_cache(iov, folder)
        except OSError as error:
            if folder == _fallback():
                raise errors.InputError(f"The payload file {iov.url} cannot be stored: {error}") from None
            self._folder = _fallback()
            Transport.announce(f"payload files cannot be stored in the cache ({error}); using {self._folder}")
            return self._into_cache(iov, self._folder)

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
        wanted = list(iovs)
        get = self.fetch if directory is None else lambda iov: self.download(iov, directory)
        self._stop.clear()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="cdb-files") as executor:
            futures = [executor.submit(get, iov) for iov in wanted]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    future.result()
                    if progress:
                        progress(done, len(wanted))
            except BaseException:
                self._stop.set()
                executor.shutdown(cancel_futures=True)
                self._stop.clear()
                raise
        return [future.result() for future in futures]

    def download(self, iov: PayloadIOV, directory: Path) -> Path:
        """The path of the verified file in a directory, below which it has the path of its URL.

        A file that is there and right stays. It is copied from the cache if it is there. Raises the errors of `fetch`.
        """
        target = directory / relative_path(iov.url)
        try:
            if self._is_right(target, iov) and _digest(iov):
                return target
            target.parent.mkdir(parents=True, exist_ok=True)
            cached = self._cached(iov)
            self._get(iov, str(cached) if cached else self.address(iov), target)
        except OSError as error:
            raise errors.InputError(f"{target} cannot be written: {error}") from None
        return target

    def address(self, iov: PayloadIOV) -> str:
        """The address of a payload file: its URL, or its URL below the base; a path if the base is a directory."""
        if SCHEME.match(iov.url):
            return iov.url
        relative_path(iov.url)
        if self._base is None:
            self._base = str(self._setting("CDB_PAYLOAD_BASE_URL") or "")
        if not self._base:
            raise errors.InputError(
                f"The payload {iov.url} is relative, and the service has no CDB_PAYLOAD_BASE_URL: set this environment variable "
                f"to the base URL or directory of payload files. ({self._config.server})"
            )
        return f"{self._base.rstrip('/')}/{iov.url.lstrip('/')}"

    # The cache.

    def _cached(self, iov: PayloadIOV) -> Path | None:
        path = self._cache_folder() / self._name(iov)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        except OSError:
            # A cache that cannot be written can be read.
            pass
        return path if self._is_right(path, iov) else None

    def _is_right(self, path: Path, iov: PayloadIOV) -> bool:
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode) or (iov.size and found.st_size != iov.size):
                return False
            if path in self._verified:
                return True
            with path.open("rb") as file:
                self._copy(_blocks(file), None, iov)
        except (OSError, errors.DataError):
            return False
        self._verified.add(path)
        return True

    def _into_cache(self, iov: PayloadIOV, folder: Path) -> Path:
        path = folder / self._name(iov)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Processes that want the same file wait for the first one. As few locks as two digits have values stay for ever.
        with _locked(folder / f"{path.name[:2]}{LOCK}"):
            if self._is_right(path, iov):
                return path
            self._get(iov, self.address(iov), path)
        self._verified.add(path)
        with suppress(OSError):
            self._limit(folder, path.stat().st_size)
        return path

    def _name(self, iov: PayloadIOV) -> str:
        digest = _digest(iov)
        # Adler-32 has too few digits to identify a file.
        if digest is None or digest[0] == "adler32":
            text = "\n".join((self.address(iov), iov.checksum, str(iov.size), str(iov.revision)))
            digest = ("sha256", hashlib.sha256(text.encode()).hexdigest())
        base = re.sub(r"[^A-Za-z0-9._+=-]", "_", urlsplit(iov.url).path.rpartition("/")[2])
        return f"{digest[1]}-{base[-100:]}"

    def _cache_folder(self) -> Path:
        if self._folder is None:
            self._folder = self._config.cache / "files" if self._config.cache else _fallback()
        return self._folder

    def _limit(self, folder: Path, added: int) -> None:
        """Remove the files that were not used for the longest time, and what interrupted downloads have left."""
        with self._lock:
            self._unlimited += added
            # The first download of a process, and then now and then.
            if self._unlimited < self._config.cache_size / 20:
                return
            self._unlimited = 0.0
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

    # Downloads.

    def _get(self, iov: PayloadIOV, address: str, target: Path) -> None:
        """Store a verified file under its name. Whatever happens, nothing else stays. Raises `OSError` of the target."""
        temporary = target.with_name(f".{uuid.uuid4()}{PART}")
        try:
            with temporary.open("xb") as file:
                self._download(iov, address, file)
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _download(self, iov: PayloadIOV, address: str, file: IO[bytes]) -> None:
        scheme = SCHEME.match(address)
        kind = scheme[1].lower() if scheme else "file"
        if kind in ("http", "https"):
            self._download_http(iov, address, file)
            return
        try:
            if kind == "file":
                source = Path(unquote(urlsplit(address).path) if scheme else address).open("rb")  # noqa: SIM115 -- closed below
            else:
                source = _open_with_fsspec(address)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise _missing(iov, address) from None
        except PermissionError as error:
            raise errors.NotAllowedError(f"The payload file {address} cannot be read: {error}") from None
        except (OSError, ValueError) as error:
            raise errors.UnavailableError(f"The payload file {address} cannot be read: {error}") from None
        with closing(source):
            self._copy(_read_errors(_blocks(source), address), file, iov)

    def _download_http(self, iov: PayloadIOV, address: str, file: IO[bytes]) -> None:
        parts = urlsplit(address)
        server = f"{parts.scheme}://{parts.netloc}"
        retries = Retries(self._config.retry_for, server, f"payload file {address}", self._stop.wait)
        with self._lock:
            pool = self._pools[server] = self._pools.get(server) or make_pool(server)
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        # Redirects are followed, and nothing else is repeated here.
        only_redirects = urllib3.Retry(None, connect=0, read=0, redirect=5, status=0, other=0)
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "cdb-client/1.0"}
        while not self._stop.is_set():
            least = 0.0
            try:
                response = pool.request(
                    "GET", address, headers=headers, timeout=timeout, retries=only_redirects, preload_content=False
                )
                with closing(response):
                    if response.status == 200:
                        file.seek(0)
                        file.truncate()
                        self._copy(response.stream(CHUNK_BYTES), file, iov)
                        return
                    reason, least = f"status {response.status}", retry_after(response)
                    if response.status not in RETRIED:
                        raise _http_error(iov, address, response.status)
            except SSLError as error:
                raise errors.CdbError(f"The TLS connection failed: {error} (payload file {address})") from None
            except LocationValueError as error:
                raise errors.InputError(f"The address of the payload file is invalid: {error}") from None
            except HTTPError as error:
                reason = reason_of(error)
            retries.pause(reason, least)
        raise _interrupted()

    def _copy(self, blocks: Iterator[bytes], file: IO[bytes] | None, iov: PayloadIOV) -> None:
        """Write a file, or only read it, and compare it with the size and the checksum of the IOV. Raises `DataError`."""
        expected = _digest(iov)
        if expected is None and iov.checksum:
            _announce_unverified(iov.checksum)
        state: _Hash | None = None
        if expected:
            state = _Adler32() if expected[0] == "adler32" else hashlib.new(expected[0], usedforsecurity=False)
        size = 0
        for block in blocks:
            if self._stop.is_set():
                raise _interrupted()
            size += len(block)
            if iov.size and size > iov.size:
                raise errors.DataError(f"The payload file {iov.url} is longer than {iov.size:,} bytes. {NOT_STORED}")
            if state is not None:
                state.update(block)
            if file is not None:
                file.write(block)
        if iov.size and size != iov.size:
            raise errors.DataError(
                f"The payload file {iov.url} has {size:,} bytes instead of {iov.size:,}. {NOT_STORED}"
            )
        if expected and state is not None and state.hexdigest() != expected[1]:
            detail = f"has the checksum {expected[0]}:{state.hexdigest()} instead of {expected[0]}:{expected[1]}"
            raise errors.DataError(f"The payload file {iov.url} {detail}. {NOT_STORED}")


class _Hash(Protocol):
    def update(self, block: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class _Adler32:
    def __init__(self) -> None:
        self._value = 1

    def update(self, block: bytes, /) -> None:
        self._value = zlib.adler32(block, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def describe(path: Path) -> tuple[int, str]:
    """The size and the MD5 of a file, for an insertion. Raises `InputError`."""
    state, size = hashlib.md5(usedforsecurity=False), 0
    try:
        with path.open("rb") as file:
            for block in _blocks(file):
                state.update(block)
                size += len(block)
    except OSError as error:
        raise errors.InputError(f"{path} cannot be read: {error}") from None
    return size, state.hexdigest()


def relative_path(url: str) -> Path:
    """The path of a URL below a directory; with a scheme, it begins with the host. Raises `DataError` if it has `..`."""
    parts = urlsplit(url) if SCHEME.match(url) else None
    text = url
    if parts:
        text = f"{parts.netloc.rpartition('@')[2]}/{parts.path}" + (f"?{parts.query}" if parts.query else "")
    segments: Sequence[str] = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in segments or not segments:
        raise errors.DataError(f"The payload URL {url!r} leads out of the directory of payload files.")
    return Path(*(re.sub(r"[\x00-\x1f\\]", "_", part) for part in segments))


def _digest(iov: PayloadIOV) -> tuple[str, str] | None:
    """The algorithm and the digits of a checksum; None for none, or in an unknown form."""
    match = CHECKSUM.fullmatch(iov.checksum.lower())
    if not match or len(match[2]) not in ALGORITHMS or (match[1] and PREFIXES.get(match[1]) != len(match[2])):
        return None
    return ALGORITHMS[len(match[2])], match[2]


_unverified: set[str] = set()


def _announce_unverified(checksum: str) -> None:
    if not _unverified:
        _unverified.add(checksum)
        known = "md5, sha1, sha256 and adler32"
        Transport.announce(f"checksums such as {checksum!r} are not verified, only sizes; the client knows {known}")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(CHUNK_BYTES):
        yield block


def _read_errors(blocks: Iterator[bytes], address: str) -> Iterator[bytes]:
    """The same blocks. An error while they are read is not mistaken for one of the target."""
    try:
        yield from blocks
    except OSError as error:
        raise errors.UnavailableError(f"The payload file {address} cannot be read: {error}") from None


def _open_with_fsspec(address: str) -> Any:
    try:
        import fsspec  # type: ignore[import-not-found,unused-ignore]

        return fsspec.open(address, "rb").open()
    except ImportError as error:
        needed = "the package fsspec, and for root:// fsspec-xrootd: pip install 'cdb-client[fsspec]'"
        raise errors.InputError(f"The payload file {address} needs {needed} ({error}).") from None


def _missing(iov: PayloadIOV, address: str) -> errors.CdbError:
    return errors.MissingFileError(f"The payload file of {iov.payload_type} does not exist: {address}")


def _http_error(iov: PayloadIOV, address: str, status: int) -> errors.CdbError:
    if status in (404, 410):
        return _missing(iov, address)
    kind = errors.NotAllowedError if status in (401, 403) else errors.CdbError
    return kind(f"The payload file {address} cannot be read: the server answered with status {status}.")


def _interrupted() -> errors.CdbError:
    return errors.UnavailableError("The download was interrupted.")


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
