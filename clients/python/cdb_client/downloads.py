"""Downloads of payload files: their addresses, and the verification of size and checksum."""

import hashlib
import re
import stat
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
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
# A file server that reads from tape may pause so long.
READ_SECONDS = 60.0
# The end of the names of unfinished downloads.
PART = ".part"
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# Checksums by the number of their hexadecimal digits, and by prefix.
ALGORITHMS = {8: "adler32", 32: "md5", 40: "sha1", 64: "sha256"}
PREFIXES = {"md5": 32, "sha1": 40, "sha256": 64, "adler32": 8, "ad": 8}
CHECKSUM = re.compile(r"(?:([a-z0-9]+):)?([0-9a-f]+)")


class Downloads:
    """Downloads payload files to given paths. It can be used by several threads.

    `setting` returns a public setting of the service: payloads without a scheme are below CDB_PAYLOAD_BASE_URL, unless the
    configuration has another base, which may also be a directory. Size and checksum are verified as far as an IOV has them;
    a checksum in an unknown form is not. When the event `stop` of a call is set, the call ends with an error.
    """

    def __init__(self, config: Config, setting: Callable[[str], Any]) -> None:
        self._config, self._setting = config, setting
        self._base = config.payload_base
        self._pools: dict[str, urllib3.PoolManager] = {}
        self._verified: set[tuple[Path, str]] = set()
        self._lock = threading.Lock()

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

    def is_right(self, path: Path, iov: PayloadIOV, stop: threading.Event) -> bool:
        """Whether a path is the file of an IOV. Its checksum is computed unless this object has verified the file before."""
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode) or (iov.size and found.st_size != iov.size):
                return False
            if (path, iov.checksum) in self._verified:
                return True
            with path.open("rb") as file:
                _copy(_blocks(file), None, iov, stop)
        except (OSError, errors.DataError):
            return False
        self._verified.add((path, iov.checksum))
        return True

    def get(self, iov: PayloadIOV, address: str, target: Path, stop: threading.Event) -> None:
        """Store a verified file under its name. Whatever happens, nothing else stays. Raises `OSError` of the target."""
        temporary = target.with_name(f".{uuid.uuid4()}{PART}")
        try:
            with temporary.open("xb") as file:
                self._download(iov, address, file, stop)
            temporary.replace(target)
            self._verified.add((target, iov.checksum))
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _download(self, iov: PayloadIOV, address: str, file: IO[bytes], stop: threading.Event) -> None:
        scheme = SCHEME.match(address)
        kind = scheme[1].lower() if scheme else "file"
        if kind in ("http", "https"):
            self._download_http(iov, address, file, stop)
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
        except OSError as error:
            raise errors.UnavailableError(f"The payload file {address} cannot be read: {error}") from None
        with closing(source):
            _copy(_read_errors(_blocks(source), address), file, iov, stop)

    def _download_http(self, iov: PayloadIOV, address: str, file: IO[bytes], stop: threading.Event) -> None:
        parts = urlsplit(address)
        server = f"{parts.scheme}://{parts.netloc}"
        retries = Retries(self._config.retry_for, server, f"payload file {address}", stop.wait)
        with self._lock:
            pool = self._pools[server] = self._pools.get(server) or make_pool(server)
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        # Redirects are followed, and nothing else is repeated here.
        only_redirects = urllib3.Retry(None, connect=0, read=0, redirect=5, status=0, other=0)
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "cdb-client/1.0"}
        while not stop.is_set():
            least = 0.0
            try:
                response = pool.request(
                    "GET", address, headers=headers, timeout=timeout, retries=only_redirects, preload_content=False
                )
                with closing(response):
                    if response.status == 200:
                        file.seek(0)
                        file.truncate()
                        _copy(response.stream(CHUNK_BYTES), file, iov, stop)
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


def _copy(blocks: Iterator[bytes], file: IO[bytes] | None, iov: PayloadIOV, stop: threading.Event) -> None:
    """Write a file, or only read it, and compare it with the size and the checksum of the IOV. Raises `DataError`."""
    expected = digest_of(iov)
    if expected is None and iov.checksum:
        _announce_unverified()
    state: _Hash | None = None
    if expected:
        state = _Adler32() if expected[0] == "adler32" else hashlib.new(expected[0], usedforsecurity=False)
    size = 0
    for block in blocks:
        if stop.is_set():
            raise _interrupted()
        size += len(block)
        if iov.size and size > iov.size:
            raise errors.DataError(f"The payload file {iov.url} is longer than {iov.size:,} bytes.")
        if state is not None:
            state.update(block)
        if file is not None:
            file.write(block)
    if iov.size and size != iov.size:
        raise errors.DataError(f"The payload file {iov.url} has {size:,} bytes instead of {iov.size:,}.")
    if expected and state is not None and state.hexdigest() != expected[1]:
        detail = f"has the checksum {expected[0]}:{state.hexdigest()} instead of {expected[0]}:{expected[1]}"
        raise errors.DataError(f"The payload file {iov.url} {detail}.")


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
    segments = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in segments or not segments:
        raise errors.DataError(f"The payload URL {url!r} leads out of the directory of payload files.")
    return Path(*(re.sub(r"[\x00-\x1f\\]", "_", part) for part in segments))


def digest_of(iov: PayloadIOV) -> tuple[str, str] | None:
    """The algorithm and the digits of a checksum; None for none, or in an unknown form."""
    match = CHECKSUM.fullmatch(iov.checksum.lower())
    if not match or len(match[2]) not in ALGORITHMS or (match[1] and PREFIXES.get(match[1]) != len(match[2])):
        return None
    return ALGORITHMS[len(match[2])], match[2]


@cache
def _announce_unverified() -> None:
    Transport.announce(
        "some checksums are of an unknown kind (known: md5, sha1, sha256, adler32); only sizes are verified"
    )


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
    except (ImportError, ValueError) as error:
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
