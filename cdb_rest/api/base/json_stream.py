"""JSON responses in pieces, which are written while rows are read from the database.

`respond` makes the first pieces of the body before it returns, which is the whole of a small one. If more follow, the
transaction stays open until the response is sent or closed, and a later error truncates the response.
"""

import contextlib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from time import monotonic

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from cdb_rest.api.base.conversion import Document
from cdb_rest.api.base.json import dump
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.http.caching import REVISION_HEADER, Resource, conditional_get, headers_of
from cdb_rest.lookup.model import State
from cdb_rest.rules.errors import NotFoundError

# Size of the pieces that are sent; each costs one or two system calls.
PIECE_BYTES = 64 * 1024
# A smaller piece is sent after this time, so that clients and proxies see that the response is being made.
PIECE_SECONDS = 2
# A body up to about this size is sent when it is complete, so that an error while it is made never truncates it; unless that
# takes longer than `PIECE_SECONDS`.
WHOLE_BYTES = 1024 * 1024

# With this header, nginx neither buffers nor caches a response.
UNBUFFERED = "X-Accel-Buffering"

# A proxy in the Via header that used HTTP/1.0.
OLD_HOP = re.compile(r"(?:^|,)\s*(?:HTTP/)?1\.0\s")

# One element of a JSON array, in pieces.
Element = Iterable[bytes]


def can_detect_truncation(request: HttpRequest) -> bool:
    """Whether the client can detect a truncated response that has no Content-Length.

    In HTTP/1.0, a complete and a truncated response both end when the connection closes. Proxies report in `Via` the
    HTTP version by which they received the request.
    """
    # granian writes HTTP/1.0 without its minor number.
    return request.META.get("SERVER_PROTOCOL") not in ("HTTP/1.0", "HTTP/1") and not OLD_HOP.search(
        request.META.get("HTTP_VIA", "")
    )


def add_caching_headers(request: HttpRequest, response: HttpResponseBase, headers: Mapping[str, str]) -> None:
    """Add the headers of `headers_of` to a streamed response.

    If the client cannot detect a truncated response, it gets only the revision, because it must not be cached.
    """
    if not can_detect_truncation(request):
        headers = {REVISION_HEADER: headers[REVISION_HEADER]}
    for name, value in headers.items():
        response[name] = value


def nested(document: Document, key: str, elements: Iterable[Element]) -> Element:
    """The document as JSON, with `elements` as the array of the member `key`, which is not the first or the last."""
    keys = list(document)
    place = keys.index(key)
    before = dump({name: document[name] for name in keys[:place]})
    after = dump({name: document[name] for name in keys[place + 1 :]})
    yield b'%s,"%s":' % (before[:-1], key.encode())
    yield from array(elements)
    yield b"," + after[1:]


def array(elements: Iterable[Element]) -> Generator[bytes]:
    """A JSON array."""
    yield b"["
    for index, element in enumerate(elements):
        if index:
            yield b","
        yield from element
    yield b"]"


def array_of_lines(chunks: Iterable[bytes]) -> Generator[bytes]:
    """A JSON array of the JSON texts in lines, one per line; the chunks may end anywhere. An empty chunk becomes a newline."""
    yield b"["
    # What follows a line, until it is known that there is another one.
    separator = b""
    for chunk in chunks:
        text = separator + chunk.replace(b"\n", b",\n") if chunk else b"\n" + separator
        separator = b",\n" if text.endswith(b",\n") else b""
        yield text.removesuffix(b",\n")
    yield b"]"


def first(elements: Iterator[Element], missing: NotFoundError) -> Generator[bytes]:
    """The first element as JSON. Raises `missing` if there is none."""
    element = next(elements, None)
    if element is None:
        raise missing
    yield from element


def respond_cached(
    request: HttpRequest, resource: Resource, read: Callable[[], tuple[State, Iterable[bytes]]]
) -> HttpResponseBase:
    """A JSON response with the caching headers of the state that `read` returns, and the pieces that it returns.

    `read` is called in a snapshot, in which the pieces are made. If the client's copy is current, the response is 304 instead.
    """
    not_modified = conditional_get(request.META, resource)
    if not_modified:
        return not_modified
    headers: dict[str, str] = {}

    def pieces() -> Generator[bytes]:
        state, body = read()
        headers.update(headers_of(state, resource.digest))
        yield from body

    response = respond(pieces())
    add_caching_headers(request, response, headers)
    return response


def respond(pieces: Generator[bytes]) -> HttpResponseBase:
    """A JSON response with these pieces, which are made in one snapshot; the first ones before it returns."""
    body = Body(_in_snapshot(pieces))
    if body.is_whole:
        # It has a Content-Length, so that a client can detect that it was truncated.
        return HttpResponse(b"".join(body), content_type="application/json")
    response = StreamingHttpResponse(body, content_type="application/json")
    response[UNBUFFERED] = "no"
    return response


def _in_snapshot(pieces: Generator[bytes]) -> Generator[bytes]:
    # `closing` closes the cursors before the transaction ends, also if the client disconnects.
    with snapshot(), contextlib.closing(pieces):
        gathered: list[bytes] = []
        size = 0
        due = monotonic() + PIECE_SECONDS
        for piece in pieces:
            gathered.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES or (size and monotonic() > due):
                yield b"".join(gathered)
                gathered, size = [], 0
                due = monotonic() + PIECE_SECONDS
        yield b"".join(gathered)


class Body:
    """The pieces of a body. The constructor produces the first ones and raises their errors.

    So an early error can still become an error response. `is_whole` is True if no piece is left.
    """

    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces = pieces
        self._prefetched: list[bytes] = []
        self.is_whole = False
        size, due = 0, monotonic() + PIECE_SECONDS
        for piece in pieces:
            self._prefetched.append(piece)
            size += len(piece)
            if size > WHOLE_BYTES or (len(self._prefetched) > 1 and monotonic() > due):
                return
        self.is_whole = True

    def __iter__(self) -> Iterator[bytes]:
        yield from self._prefetched
        yield from self._pieces

    def close(self) -> None:
        """Close the generator of the pieces, which ends its transaction. Django calls it at the response's end."""
        self._pieces.close()


def object_with_array(name: str, batches: Iterable[list[Document]], rest: Callable[[], Document]) -> Generator[bytes]:
    """A JSON object: an array of documents, and the members that `rest` returns after them."""
    yield b'{"%s":[' % name.encode()
    separator = b""
    for batch in batches:
        for item in batch:
            yield separator + dump(item)
            separator = b","
        # The database may work for seconds before the next batch.
        yield b"\n"
    yield b"]," + dump(rest())[1:]
