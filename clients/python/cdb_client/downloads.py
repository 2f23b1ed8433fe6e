"""Downloads of payload files: from file, http and fsspec addresses, with verification of size and checksum."""

import errno
import hashlib
import re
import threading
import uuid
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from cdb_client import errors
from cdb_client.payload import PayloadIOV
from cdb_client.transport import HEADERS, Retries, pool_of

CHUNK_BYTES = 2**20
# Redirects are followed, and nothing else is repeated by urllib3.
REDIRECTS = urllib3.Retry(None, connect=0, read=0, redirect=5, status=0, other=0)
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# Checksums by the number of their hexadecimal digits.
ALGORITHMS = {8: "adler32", 32: "md5", 40: "sha1", 64: "sha256"}
# The errors for a status, or for an error number of the operating system.
MISSING = dict.fromkeys((404, 410, errno.ENOENT, errno.EISDIR, errno.ENOTDIR), errors.DataError)
FORBIDDEN = dict.fromkeys((401, 403, errno.EACCES, errno.EPERM), errors.NotAllowedError)
FAULTS: dict[int, type[errors.CdbError]] = {**MISSING, **FORBIDDEN}
# The temporary files of downloads in progress.
_unfinished: set[Path] = set()


def download(iov: PayloadIOV, address: str, target: Path, retry_for: float, stop: threading.Event) -> None:
    """Store a verified payload file as `target`. After an error, no file is left.

    An http server that does not answer is asked again for `retry_for` seconds, until `stop` is set. Raises `OSError` if the
    target cannot be written, and subclasses of `CdbError`.
    """
    retries = Retries(retry_for, f"payload file {address}", stop.wait)
    temporary = target.with_name(f".{uuid.uuid4()}.part")
    _unfinished.add(temporary)
    try:
        while True:
            try:
                is_http = address.lower().startswith(("http://", "https://"))
                blocks = _http_blocks(address, retries) if is_http else _local_blocks(address)
                with temporary.open("wb") as file:
                    file.writelines(verified(blocks, iov, stop))
                temporary.replace(target)
                return
            except HTTPError as error:
                retries.pause(error)
    finally:
        temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def remove_unfinished() -> None:
    """Remove the files of downloads that this process has not finished, before it ends."""
    for temporary in tuple(_unfinished):
        temporary.unlink(missing_ok=True)


def is_right(path: Path, iov: PayloadIOV) -> bool:
    """Whether a path is the file of an IOV, as far as its size and checksum are known."""
    try:
        for _ in verified(_local_blocks(str(path)), iov):
            pass
    except errors.CdbError:
        return False
    return True


def verified(blocks: Iterator[bytes], iov: PayloadIOV, stop: threading.Event | None = None) -> Iterator[bytes]:
    """The blocks of a file. Raises `DataError` at the end unless they have the size and the checksum of the IOV."""
    name, digits = digest_of(iov) or ("adler32", None)
    size, adler, state = 0, 1, None if name == "adler32" else hashlib.new(name, usedforsecurity=False)
    for block in blocks:
        if stop and stop.is_set():
            raise errors.UnavailableError("The download was interrupted.")
        size += len(block)
        if state:
            state.update(block)
        else:
            adler = zlib.adler32(block, adler)
        yield block
    if iov.size and size != iov.size:
        raise errors.DataError(f"The payload file {iov.url} has {size:,} bytes instead of {iov.size:,}.")
    found = state.hexdigest() if state else f"{adler:08x}"
    if digits and found != digits:
        raise errors.DataError(f"The payload file {iov.url} has the {name} checksum {found} instead of {digits}.")


def digest_of(iov: PayloadIOV) -> tuple[str, str] | None:
    """The algorithm and the digits of a checksum; None for none, or in an unknown form, which is not verified."""
    prefix, _, digits = iov.checksum.lower().rpartition(":")
    name = ALGORITHMS.get(len(digits), "")
    # The prefix is the name of the algorithm, or a part such as `ad`.
    return (name, digits) if name and name.startswith(prefix) and re.fullmatch("[0-9a-f]+", digits) else None


def relative_path(url: str) -> Path:
    """The path of a URL below a directory; with a scheme, it begins with the host. Raises `DataError` if it has `..`."""
    if SCHEME.match(url):
        parts = urlsplit(url)
        url = f"{parts.netloc.rpartition('@')[2]}/{parts.path}" + (f"?{parts.query}" if parts.query else "")
    segments = [part for part in url.split("/") if part not in ("", ".")]
    if ".." in segments or not segments:
        raise errors.DataError(f"The payload URL {url!r} leads out of the directory of payload files.")
    return Path(*(re.sub(r"[\x00-\x1f\\]", "_", part) for part in segments))


def _http_blocks(address: str, retries: Retries) -> Iterator[bytes]:
    parts = urlsplit(address)
    pool = pool_of(f"{parts.scheme}://{parts.netloc}")
    options: dict[str, Any] = {"headers": HEADERS | {"Accept": "*/*"}, "retries": REDIRECTS, "preload_content": False}
    with closing(retries.send(pool, "GET", address, **options)) as response:
        if response.status != 200:
            detail = f"The payload file {address} cannot be read: the server answered with status {response.status}."
            raise FAULTS.get(response.status, errors.CdbError)(detail)
        # A web server may say that a file such as x.gz is compressed; its bytes are those that were inserted.
        yield from response.stream(CHUNK_BYTES, decode_content=False)


def _local_blocks(address: str) -> Iterator[bytes]:
    try:
        with closing(_open(address)) as file:
            while block := file.read(CHUNK_BYTES):
                yield block
    except OSError as error:
        detail = f"The payload file {address} cannot be read: {error}"
        raise FAULTS.get(error.errno or 0, errors.UnavailableError)(detail) from None


def _open(address: str) -> Any:
    if not SCHEME.match(address):
        return Path(address).open("rb")
    if address.lower().startswith("file:"):
        return Path(unquote(urlsplit(address).path)).open("rb")
    try:
        import fsspec  # type: ignore[import-not-found,unused-ignore]

        return fsspec.open(address, "rb").open()
    except (ImportError, ValueError) as error:
        needed = "the package fsspec, and for root:// fsspec-xrootd: pip install 'cdb-client[fsspec]'"
        raise errors.InputError(f"The payload file {address} needs {needed} ({error}).") from None
