"""HTTP: requests to one server, with retries, tokens and errors."""

import json
import random
import ssl
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
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


class Transport:
    """Requests to one server. It can be used by several threads.

    `requests` is the number of requests that were sent. Messages of errors have the address of the server, and what a request
    is about: `about` is, for example, "tag prod, moment 5,0".
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.requests = 0
        self._needs_token = False
        self._pool = _make_pool(config.server)

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
        return self._read(_Request(method, path, query, headers, sent, about, SLOW_SECONDS, identifies=True)).json()

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
        url = self.config.server + API + request.path + ("?" + urlencode(request.query) if request.query else "")
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=request.seconds)
        begun, wait, tokens, is_announced = time.monotonic(), FIRST_WAIT_SECONDS, 0, False
        token = self._token(request) if request.identifies or self._needs_token else None
        while True:
            least = 0.0
            self.requests += 1
            headers = request.headers | ({"Authorization": f"Bearer {token}"} if token else {})
            try:
                response = self._pool.request(
                    request.method,
                    url,
                    body=request.body,
                    headers=headers,
                    timeout=timeout,
                    preload_content=not is_streamed,
                )
            except SSLError as error:
                self._fail(errors.CdbError, f"The TLS connection failed: {error}", request)
            except HTTPError as error:
                reason = _reason_of(error)
            else:
                if response.status in (200, 304):
                    return response
                reason, least = f"status {response.status}: {_detail(response)}", _retry_after(response)
                if response.status == 401 and tokens < MAX_TOKENS:
                    # A read that needs a token after all, or another program has replaced the token meanwhile.
                    rejected, token = token, self._token(request)
                    if token not in (None, rejected):
                        self._needs_token, tokens = True, tokens + 1
                        continue
                if response.status not in RETRIED:
                    self._refused(response, request)
            pause, allowed = least + _random.uniform(0, wait), self.config.retry_for
            if time.monotonic() - begun + pause > allowed:
                detail = f"The service does not answer ({reason}); gave up after {allowed:g} s. Try again later."
                self._fail(errors.UnavailableError, detail, request)
            if not is_announced:
                is_announced = True
                self.announce(f"{self.config.server} does not answer ({reason}); trying again for {allowed:g} s")
            time.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    @staticmethod
    def announce(message: str) -> None:
        """Say on a terminal that the client waits. The command replaces this."""
        if sys.stderr.isatty():
            sys.stderr.write(f"cdb: {message}\n")

    def _token(self, request: "_Request") -> str | None:
        token, parts = find_token(self.config), urlsplit(self.config.server)
        if not token:
            return None
        if not token.isascii() or not token.isprintable() or " " in token:
            self._fail(errors.InputError, "The token has characters that no token has. Is it the right file?", request)
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1") and not self.config.token:
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
        self._fail(kind, detail, request)

    def _fail(self, kind: type[errors.CdbError], detail: str, request: "_Request") -> NoReturn:
        raise kind(f"{detail} ({', '.join(filter(None, (self.config.server, request.about)))})") from None


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


def _make_pool(server: str) -> urllib3.PoolManager:
    parts = urlsplit(server)
    options: dict[str, Any] = {
        "retries": False,
        "headers": {"User-Agent": "cdb-client/1.0", "Accept": "application/json"},
        "maxsize": 4,
    }
    if parts.scheme == "https":
        # It trusts the certificates of the operating system, and those of SSL_CERT_FILE and SSL_CERT_DIR.
        options["ssl_context"] = ssl.create_default_context()
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.netloc):
        return urllib3.ProxyManager(proxy, **options)
    return urllib3.PoolManager(**options)


def _reason_of(error: HTTPError) -> str:
    return str(getattr(error, "reason", error)).rpartition("object at 0x")[2].partition(": ")[2] or str(error)


def _detail(response: urllib3.BaseHTTPResponse) -> str:
    try:
        found = json.loads(response.data)
        return str(found["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered with status {response.status} and without JSON."


def _retry_after(response: urllib3.BaseHTTPResponse) -> float:
    text = response.headers.get("Retry-After", "")
    return min(float(text), LONGEST_WAIT_SECONDS) if text.isdigit() else 0.0
