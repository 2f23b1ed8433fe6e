"""HTTP: requests to one server, with retries, tokens and errors."""

import json
import os
import random
import ssl
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from cdb_client import errors
from cdb_client.config import Config
from cdb_client.tokens import find_token

API = "/api/cdb_rest/"
# Statuses that say that a later attempt may succeed.
RETRIED = (429, 502, 503, 504)
# The longest wait between two attempts, and the base of the exponential backoff.
LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS = 60.0, 0.5
# Longer than the service's own limits: of a lookup, and of other requests.
CONNECT_SECONDS, READ_SECONDS, SLOW_SECONDS = 20.0, 65.0, 610.0
# A request that gets 401 is sent with at most so many other tokens.
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
# Processes that start together must not draw the same waits.
_random = random.SystemRandom()

Query = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Response:
    """A response with status 200 or 304. The names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: Query
    headers: dict[str, str]
    body: bytes | None
    about: str
    # The longest pause while the response is read.
    seconds: float
    # Whether it is sent with a token from the beginning.
    identifies: bool = False


class Retries:
    """The pauses between the attempts of one request: exponential, with full jitter, until `seconds` are over.

    `server` does not answer, and `about` is the text in parentheses at the end of an error. `sleep` may return early.
    """

    def __init__(self, seconds: float, server: str, about: str, sleep: Callable[[float], object] = time.sleep) -> None:
        self._seconds, self._server, self._about, self._sleep = seconds, server, about, sleep
        self._begun, self._wait, self._is_announced = time.monotonic(), FIRST_WAIT_SECONDS, False

    def pause(self, reason: str, least: float = 0.0) -> None:
        """Wait before the next attempt, for `least` seconds or longer. Raises `UnavailableError` if the time is over."""
        pause = least + _random.uniform(0, self._wait)
        if time.monotonic() - self._begun + pause > self._seconds:
            detail = f"The service does not answer ({reason}); gave up after {self._seconds:g} s. Try again later."
            raise errors.UnavailableError(f"{detail} ({self._about})") from None
        if not self._is_announced:
            self._is_announced = True
            Transport.announce(f"{self._server} does not answer ({reason}); trying again for {self._seconds:g} s")
        self._sleep(pause)
        self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)


class Transport:
    """Requests to one server. It can be used by several threads.

    `requests` is the number of requests that were sent, and `written` when the last write ended, on the monotonic clock. Messages
    of errors have the address of the server, and what a request is about: `about` is, for example, "tag prod, moment 5,0".
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.requests = 0
        self.written = 0.0
        self._needs_token = False
        self._connect()

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
        seconds = SLOW_SECONDS if is_slow else READ_SECONDS
        return self._read(_Request("GET", path, query, headers, None, about, seconds, identifies))

    def post_read(self, path: str, body: Any, *, about: str = "") -> Response:
        """The response to a read whose parameters are in the body of a POST. Raises a subclass of `CdbError`."""
        headers = {"Content-Type": "application/json"}
        return self._read(_Request("POST", path, (), headers, json.dumps(body).encode(), about, SLOW_SECONDS))

    def write(
        self, method: str, path: str, body: Any = None, query: Query = (), *, about: str = "", key: str | None = None
    ) -> Any:
        """The parsed response to a write, which is carried out once, however often it has to be sent.

        `key` is its idempotency key, by default a new one. `body` is sent as JSON. Raises a subclass of `CdbError`.
        """
        headers = {"Idempotency-Key": key or str(uuid.uuid4()), "Content-Type": "application/json"}
        sent = json.dumps(body).encode()
        try:
            return self._read(_Request(method, path, query, headers, sent, about, SLOW_SECONDS, identifies=True)).json()
        finally:
            self.written = time.monotonic()

    @contextmanager
    def stream(self, path: str, query: Query = (), *, about: str = "") -> Iterator[urllib3.BaseHTTPResponse]:
        """A response whose body is read piece by piece, for example as lines.

        While it is read, urllib3 raises `HTTPError` if the connection breaks or the body is not complete.
        """
        request = _Request("GET", path, query, {}, None, about, SLOW_SECONDS)
        response = self._send(request, is_streamed=True)
        try:
            yield response
        finally:
            # Without this, a connection whose body was not read to its end would be used again.
            response.close()

    def _read(self, request: "_Request") -> Response:
        response = self._send(request)
        found = {name.lower(): value for name, value in response.headers.items()}
        kind = found.get("content-type", "")
        if response.status == 200 and not kind.startswith("application/json"):
            detail = f"The response is not JSON but {kind or 'without a type'}. Is this the address of a cdb service?"
            self._fail(errors.CdbError, detail, request)
        return Response(response.status, found, response.data)

    def _send(self, request: "_Request", *, is_streamed: bool = False) -> urllib3.BaseHTTPResponse:
        target = self._target + API + request.path + ("?" + urlencode(request.query) if request.query else "")
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=request.seconds)
        if self._process != os.getpid():
            # A child process must not use the connections of its parent, which would get its responses.
            self._connect()
        retries, tokens = Retries(self.config.retry_for, self.config.server, self._about(request)), 0
        token = self._token(request) if request.identifies or self._needs_token else None
        while True:
            least = 0.0
            self.requests += 1
            headers = {**self._pool.headers, **request.headers} | (
                {"Authorization": f"Bearer {token}"} if token else {}
            )
            try:
                response = self._pool.urlopen(
                    request.method,
                    target,
                    redirect=False,
                    body=request.body,
                    headers=headers,
                    timeout=timeout,
                    preload_content=not is_streamed,
                )
            except SSLError as error:
                self._fail(errors.CdbError, f"The TLS connection failed: {error}", request)
            except HTTPError as error:
                reason = reason_of(error)
            else:
                if response.status in (200, 304):
                    return response
                reason, least = f"status {response.status}: {_detail(response)}", retry_after(response)
                if response.status == 401 and tokens < MAX_TOKENS:
                    # A read that needs a token after all, or another program has replaced the token meanwhile.
                    rejected, token = token, self._token(request)
                    if token not in (None, rejected):
                        self._needs_token, tokens = True, tokens + 1
                        continue
                if response.status not in RETRIED and not _is_conflict(response):
                    self._refused(response, request)
            retries.pause(reason, least)

    def _connect(self) -> None:
        manager = make_pool(self.config.server)
        self._pool: urllib3.PoolManager | urllib3.HTTPConnectionPool = manager
        self._target, self._process = self.config.server, os.getpid()
        if not isinstance(manager, urllib3.ProxyManager):
            # Without the manager, a request takes 0.1 ms less.
            self._pool, self._target = (
                manager.connection_from_url(self.config.server),
                urlsplit(self.config.server).path,
            )

    @staticmethod
    def announce(message: str) -> None:
        """Say on a terminal that the client waits. The command replaces this."""
        if sys.stderr.isatty():
            sys.stderr.write(f"cdb: {message}\n")

    def _token(self, request: "_Request") -> str | None:
        token = find_token(self.config)
        if not token:
            return None
        if not token.isascii() or not token.isprintable() or " " in token:
            self._fail(errors.InputError, "The token has characters that no token has. Is it the right file?", request)
        if is_readable_by_others(self.config.server) and not self.config.token:
            detail = (
                "A token is not sent over http, where others can read it. Use https; if you accept that, set CDB_TOKEN."
            )
            self._fail(errors.NotAllowedError, detail, request)
        return token

    def _refused(self, response: urllib3.BaseHTTPResponse, request: "_Request") -> NoReturn:
        kind = ERRORS.get(response.status, errors.CdbError)
        detail = _detail(response)
        if 300 <= response.status < 400:
            detail = f"The server redirects to {response.headers.get('Location')}: use that address."
        if response.status == 401:
            detail += " Log in with `cdb login`, or set CDB_TOKEN."
        self._fail(kind, detail, request, _document(response))

    def _fail(
        self,
        kind: type[errors.CdbError],
        detail: str,
        request: "_Request",
        document: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        error = kind(f"{detail} ({self._about(request)})")
        error.document = document or {}
        raise error from None

    def _about(self, request: "_Request") -> str:
        return ", ".join(filter(None, (self.config.server, request.about)))


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


def is_readable_by_others(server: str) -> bool:
    """Whether a token that is sent to this server could be read on the way."""
    parts = urlsplit(server)
    return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def make_pool(server: str) -> urllib3.PoolManager:
    """The connections to a server, through its proxy if the environment names one. It can be used by several threads."""
    parts = urlsplit(server)
    options: dict[str, Any] = {
        "retries": False,
        "headers": {"User-Agent": "cdb-client/1.0", "Accept": "application/json"},
        "maxsize": 8,
    }
    if parts.scheme == "https":
        # It trusts the certificates of the operating system, and those of SSL_CERT_FILE and SSL_CERT_DIR.
        options["ssl_context"] = ssl.create_default_context()
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.netloc):
        return urllib3.ProxyManager(proxy, **options)
    return urllib3.PoolManager(**options)


def reason_of(error: HTTPError) -> str:
    """What is wrong with a connection, in a few words."""
    return str(getattr(error, "reason", error)).rpartition("object at 0x")[2].partition(": ")[2] or str(error)


def retry_after(response: urllib3.BaseHTTPResponse) -> float:
    """The number of seconds that the response asks to wait."""
    text = response.headers.get("Retry-After", "")
    return min(float(text), LONGEST_WAIT_SECONDS) if text.isdigit() else 0.0


def _detail(response: urllib3.BaseHTTPResponse) -> str:
    found = _document(response).get("detail")
    return str(found) if found else f"The server answered with status {response.status} and without JSON."


def _document(response: urllib3.BaseHTTPResponse) -> Mapping[str, Any]:
    try:
        found = json.loads(response.data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_conflict(response: urllib3.BaseHTTPResponse) -> bool:
    # Another request changed the same objects at the same moment; nothing was stored.
    return response.status == 409 and _document(response).get("code") == "concurrent_change"
