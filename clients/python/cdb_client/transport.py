"""HTTP: requests to one server, with retries, tokens and errors."""

import json
import logging
import math
import operator
import os
import random
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, LocationValueError, ProxySchemeUnknown, SSLError

from cdb_client import __version__, errors
from cdb_client.config import Config
from cdb_client.tokens import find_token

API = "/api/cdb_rest/"
# Statuses that say that a later attempt may succeed.
RETRIED = (429, 502, 503, 504)
# The longest wait between two attempts, and the base of the exponential backoff.
LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS = 60.0, 0.5
# Longer than the service's own limits: of a lookup, and of other requests.
CONNECT_SECONDS, READ_SECONDS, SLOW_SECONDS = 20.0, 65.0, 610.0
# Requests to this machine need no proxy, and nobody can read them on the way.
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A request is sent with at most so many tokens.
MAX_TOKENS = 3
ERRORS: Mapping[int, type[errors.CdbError]] = {
    400: errors.InputError,
    401: errors.NotAllowedError,
    403: errors.NotAllowedError,
    404: errors.NotFoundError,
    409: errors.RefusedError,
    410: errors.NotFoundError,
    413: errors.InputError,
}
HEADERS = {"User-Agent": f"cdb-client/{__version__}", "Accept": "application/json"}
JSON = {"Content-Type": "application/json"}

Query = Sequence[tuple[str, str]]
Pool = urllib3.PoolManager | urllib3.HTTPConnectionPool


@dataclass(frozen=True, slots=True)
class Response:
    """A response with status 200 or 304. `about` is what an error says in parentheses."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    about: str

    def json(self) -> Any:
        """The body, parsed. Raises `CdbError`."""
        try:
            return json.loads(self.body)
        except ValueError:
            detail = f"The response is not JSON but {self.headers.get('content-type', 'without a type')}."
            raise errors.CdbError(f"{detail} Is this the address of a cdb service? ({self.about})") from None


class Retries:
    """The attempts of one request: with exponential pauses and full jitter, until `seconds` are over.

    `about` is the server and what the request is about. If `sleep` returns true, there is no further attempt.
    """

    def __init__(self, seconds: float, about: str, sleep: Callable[[float], Any] = time.sleep) -> None:
        self._seconds, self._about, self._sleep = seconds, about, sleep
        self._begun, self._wait, self._is_announced = time.monotonic(), FIRST_WAIT_SECONDS, False

    def send(self, pool: Pool, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:
        """The first response that does not ask to try again later. Raises `CdbError`, `UnavailableError` or `InputError`."""
        while True:
            try:
                response: urllib3.BaseHTTPResponse = pool.urlopen(method, url, **options)
            except SSLError as error:
                raise errors.CdbError(f"The TLS connection failed: {error} ({self._about})") from None
            except LocationValueError as error:
                raise errors.InputError(f"The address is invalid: {error} ({self._about})") from None
            except HTTPError as error:
                self.pause(error)
                continue
            # After a concurrent change of the same objects, nothing was stored.
            is_conflict = response.status == 409 and document_of(response).get("code") == "concurrent_change"
            if response.status not in RETRIED and not is_conflict:
                return response
            self.pause(response)

    def pause(self, failure: HTTPError | urllib3.BaseHTTPResponse) -> None:
        """Wait before the next attempt. Raises `UnavailableError` if the time is over."""
        # Processes that start together must not draw the same pauses.
        pause = random.SystemRandom().uniform(0, self._wait)
        if isinstance(failure, HTTPError):
            reason = reason_of(failure)
        else:
            reason, after = document_of(failure)["detail"], failure.headers.get("Retry-After", "")
            pause += min(float(after), LONGEST_WAIT_SECONDS) if after.isdigit() else 0
        if time.monotonic() - self._begun + pause > self._seconds:
            detail = f"The service does not answer ({reason}); gave up after {self._seconds:g} s. Try again later."
            raise errors.UnavailableError(f"{detail} ({self._about})") from None
        if not self._is_announced:
            self._is_announced = True
            Transport.announce(f"no answer ({reason}); trying again for {self._seconds:g} s ({self._about})")
        if self._sleep(pause):
            raise errors.UnavailableError(f"Another request failed. ({self._about})") from None
        self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)


class Transport:
    """Requests to one server. It can be used by several threads.

    `requests` is the number of requests, and `written` when the last write ended, on the monotonic clock. Messages of errors
    have the address of the server, and what a request is about: `about` is, for example, "tag prod, moment 5,0".
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.requests = 0
        self.written = 0.0
        self._needs_token = False

    def get(
        self,
        path: str,
        query: Query = (),
        *,
        etag: str | None = None,
        about: str = "",
        is_slow: bool = False,
        identifies: bool = False,
    ) -> Response:
        """The response to a GET. `path` is relative to the API. With `etag`, the response may be a 304 without a body.

        A read `is_slow` if it may take longer than a lookup. Reads are sent without a token, unless the service asks for one,
        or the request `identifies` the user. Raises a subclass of `CdbError`.
        """
        headers = {"If-None-Match": etag} if etag else {}
        return self._read("GET", path, query, about, headers=headers, is_slow=is_slow, identifies=identifies)

    def post_read(self, path: str, body: Any, *, about: str = "") -> Response:
        """The response to a read whose parameters are in the body of a POST. Raises a subclass of `CdbError`."""
        return self._read("POST", path, (), about, headers=JSON, body=json.dumps(body).encode())

    def write(self, method: str, path: str, body: Any, query: Query = (), *, about: str = "") -> Any:
        """The parsed response to a write, which is carried out once, however often it has to be sent.

        `body` is sent as JSON. Raises a subclass of `CdbError`.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4()), **JSON}
        # Integers of numpy are numbers, too.
        sent = json.dumps(body, default=operator.index).encode()
        try:
            return self._read(method, path, query, about, headers=headers, body=sent, identifies=True).json()
        finally:
            self.written = time.monotonic()

    @contextmanager
    def stream(self, path: str, query: Query = (), *, about: str = "") -> Iterator[urllib3.BaseHTTPResponse]:
        """A response whose body is read piece by piece, for example as lines.

        While it is read, urllib3 raises `HTTPError` if the connection breaks or the body is not complete.
        """
        response = self._send("GET", path, query, about, preload_content=False)
        try:
            yield response
        finally:
            # Without this, a connection whose body was not read to its end would be used again.
            response.close()

    def _read(self, method: str, path: str, query: Query, about: str, **options: Any) -> Response:
        response = self._send(method, path, query, about, **options)
        return Response(response.status, response.headers, response.data, self._about(about))

    def _send(
        self,
        method: str,
        path: str,
        query: Query,
        about: str,
        *,
        headers: Mapping[str, str] = {},
        is_slow: bool = True,
        identifies: bool = False,
        **options: Any,
    ) -> urllib3.BaseHTTPResponse:
        pool, target = _connect(self.config.server)
        target += API + path + ("?" + urlencode(query) if query else "")
        if is_slow:
            options["timeout"] = urllib3.Timeout(connect=CONNECT_SECONDS, read=SLOW_SECONDS)
        about = self._about(about)
        retries = Retries(self.config.retry_for, about)
        token = self._token(about) if identifies or self._needs_token else None
        for _ in range(MAX_TOKENS):
            sent = {**HEADERS, **headers} | ({"Authorization": f"Bearer {token}"} if token else {})
            self.requests += 1
            response = retries.send(pool, method, target, headers=sent, redirect=False, **options)
            if response.status in (200, 304):
                return response
            # A read that needs a token after all, or another program has replaced the token meanwhile.
            rejected, token = token, self._token(about) if response.status == 401 else None
            if token in (None, rejected):
                break
            self._needs_token = True
        raise _refused(response, about)

    @staticmethod
    def announce(message: str) -> None:
        """Say what the client waits for or works around, as a warning of the logger `cdb_client`. The command replaces this."""
        logging.getLogger("cdb_client").warning(message)

    def _token(self, about: str) -> str | None:
        token = find_token(self.config)
        if not token:
            return None
        if not token.isascii() or not token.isprintable() or " " in token:
            raise errors.InputError(f"The token has characters that no token has. Is it the right file? ({about})")
        if is_readable_by_others(self.config.server) and not self.config.token:
            detail = (
                "A token is not sent over http, where others can read it. Use https, or set CDB_TOKEN nevertheless."
            )
            raise errors.NotAllowedError(f"{detail} ({about})")
        return token

    def _about(self, about: str) -> str:
        return f"{self.config.server}, {about}" if about else self.config.server


def pages(transport: Transport, path: str, query: Query, number: str, *, about: str = "") -> Iterator[dict[str, Any]]:
    """The elements of a list that the service sorts by a `number` of theirs, largest first, and returns in pages."""
    page, total, last = 1, 1, math.inf
    while page <= total:
        sent = [*query, ("page", str(page)), ("page_size", "200")]
        found = transport.get(path, sent, about=about, is_slow=True).json()
        for element in found["results"]:
            # An element that is stored meanwhile moves the others to later places.
            if element[number] < last:
                last = element[number]
                yield element
        page, total = page + 1, found["total_pages"]


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


def is_readable_by_others(server: str) -> bool:
    """Whether a token that is sent to this server could be read on the way."""
    parts = urlsplit(server)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


@cache
def pool_of(server: str) -> urllib3.PoolManager:
    """The connections to a server, through its proxy if the environment names one. It can be used by several threads."""
    parts = urlsplit(server)
    timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
    options: dict[str, Any] = {"retries": False, "headers": HEADERS, "timeout": timeout, "maxsize": 8}
    if parts.scheme == "https":
        # It trusts the certificates of the operating system, and those of SSL_CERT_FILE and SSL_CERT_DIR.
        options["ssl_context"] = ssl.create_default_context()
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.netloc) and parts.hostname not in LOOPBACK:
        try:
            user = urllib3.util.parse_url(proxy).auth
            headers = urllib3.make_headers(proxy_basic_auth=user) if user else None
            return urllib3.ProxyManager(proxy, proxy_headers=headers, **options)
        except (LocationValueError, ProxySchemeUnknown) as error:
            raise errors.InputError(f"The proxy {proxy!r} of the environment is no http address: {error}") from None
    return urllib3.PoolManager(**options)


@cache
def _connect(server: str) -> tuple[Pool, str]:
    """The connections to a server, and the beginning of the targets of its requests."""
    manager = pool_of(server)
    if isinstance(manager, urllib3.ProxyManager):
        return manager, server
    # Without the manager, a request takes 0.1 ms less.
    return manager.connection_from_url(server), urlsplit(server).path


# A child process must not use the connections of its parent, which would get its responses.
os.register_at_fork(after_in_child=pool_of.cache_clear)
os.register_at_fork(after_in_child=_connect.cache_clear)


def reason_of(error: HTTPError) -> str:
    """What is wrong with a connection, in a few words."""
    return str(getattr(error, "reason", error)).rpartition("object at 0x")[2].partition(": ")[2] or str(error)


def document_of(response: urllib3.BaseHTTPResponse) -> Mapping[str, Any]:
    """The JSON object of a response that is an error, with a `detail`."""
    document: dict[str, Any] = {"detail": f"The server answered with status {response.status}."}
    with suppress(ValueError, TypeError):
        document |= json.loads(response.data)
    return document


def _refused(response: urllib3.BaseHTTPResponse, about: str) -> errors.CdbError:
    document = document_of(response)
    detail = str(document["detail"])
    if 300 <= response.status < 400:
        detail = f"The server redirects to {response.headers.get('Location')}: use that address."
    if response.status == 401:
        detail += " Log in with `cdb login`, or set CDB_TOKEN."
    return ERRORS.get(response.status, errors.CdbError)(f"{detail} ({about})", document)
