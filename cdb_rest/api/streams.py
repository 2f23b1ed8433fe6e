"""Streamed responses: nested JSON, written while rows are read from the database.

Global tags are held in memory; payload lists and IOVs are not. All rows come from one snapshot. One query reads all
rows of a kind, so the number of queries does not depend on the number of rows.

A function reads the first pieces of the body before it returns. If more follow, the transaction stays open until the
response is sent or closed, and a later error truncates the response.
"""

import contextlib
import itertools
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from cdb_rest.api.documents import (
    ChangeItem,
    Document,
    NestedGlobalTag,
    NestedPayloadList,
    PayloadIOVDocument,
    document_of,
    documents,
    stream_documents,
)
from cdb_rest.api.json import dump
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.domain.errors import NotFoundError
from cdb_rest.history.changes import read_change
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList
from cdb_rest.models.global_tag import GlobalTagQuerySet

# Size of the pieces that are sent; each costs one or two system calls.
PIECE_BYTES = 64 * 1024

# With this header, nginx neither buffers nor caches a response.
UNBUFFERED = "X-Accel-Buffering"
# Nested responses of larger tags (about 300 bytes for each IOV) are not cached by nginx, to save its space.
MAX_CACHED_IOVS = 20_000

# A proxy in the Via header that used HTTP/1.0.
OLD_HOP = re.compile(r"(?:^|,)\s*(?:HTTP/)?1\.0\s")

# One element of a JSON array, in pieces.
Element = Iterable[bytes]


def can_detect_truncation(request: HttpRequest) -> bool:
    """Whether the client can detect a truncated response that has no Content-Length.

    In HTTP/1.0, a complete and a truncated response both end when the connection closes. Proxies report in `Via` the
    HTTP version by which they received the request.
    """
    return request.META.get("SERVER_PROTOCOL") != "HTTP/1.0" and not OLD_HOP.search(request.META.get("HTTP_VIA", ""))


def payload_iovs(rows: QuerySet[PayloadIOV]) -> HttpResponseBase:
    """A JSON array of IOVs, ordered by id."""
    return respond(_array((dump(iov),) for iov in stream_documents(PayloadIOVDocument, rows.order_by("id"))))


def payload_lists(rows: QuerySet[PayloadList]) -> HttpResponseBase:
    """A JSON array of payload lists, ordered by id, each with its IOVs, ordered by start."""
    return respond(_array(_payload_lists(rows)))


def payload_list(rows: QuerySet[PayloadList], missing: NotFoundError) -> HttpResponseBase:
    """A JSON object: the payload list in `rows` with the lowest id, with its IOVs, ordered by start.

    Raises `missing` if `rows` is empty. `rows` should match only one list.
    """
    return respond(_first(_payload_lists(rows), missing))


def global_tags(rows: QuerySet[GlobalTag]) -> HttpResponseBase:
    """A JSON array of global tags with their payload lists, both ordered by id, and their IOVs, ordered by start."""
    return respond(_array(_global_tags(rows)))


def global_tag(rows: QuerySet[GlobalTag], missing: NotFoundError) -> HttpResponseBase:
    """A JSON object: the global tag in `rows` with the lowest id, with its payload lists and their IOVs.

    Raises `missing` if `rows` is empty. `rows` should match only one tag.
    """
    return respond(_first(_global_tags(rows), missing))


def conditional_global_tag(
    rows: GlobalTagQuerySet, missing: NotFoundError, headers_of: Callable[[Document], Mapping[str, str]]
) -> HttpResponseBase:
    """Like `global_tag`, with the headers that `headers_of` returns for the tag's document.

    Call it only if `can_detect_truncation`, because HTTP caches may store the response. `rows` must match at most one
    tag. The document that `headers_of` gets also has `version` and `modified`, from the same snapshot; the response
    does not have them. nginx does not cache responses with more than `MAX_CACHED_IOVS` IOVs.
    """
    headers: dict[str, str] = {}
    large = []

    def note(tag: Document) -> None:
        large.append(tag.pop("payload_iov_count") > MAX_CACHED_IOVS)
        headers.update(headers_of(tag))
        del tag["version"], tag["modified"]

    # `respond` makes the first piece, so the tag has been read when it returns.
    response = respond(_first(_global_tags(rows.with_version(), note), missing))
    for name, value in headers.items():
        response[name] = value
    if not large[0]:
        del response[UNBUFFERED]
    return response


def change(rows: QuerySet[GlobalTagChange], missing: Callable[[], NotFoundError]) -> HttpResponseBase:
    """A JSON object: the change in `rows`, with what it removed (`before`) and what it added (`after`).

    Raises the error that `missing` returns if `rows` is empty, and those of `read_change`. `rows` should match only one change.
    """
    return respond(_change(rows, missing))


def _change(rows: QuerySet[GlobalTagChange], missing: Callable[[], NotFoundError]) -> Generator[bytes]:
    found = rows.first()
    if found is None:
        raise missing()
    before, after, groups = read_change(found)
    yield dump(document_of(ChangeItem, found))[:-1]
    group = next(groups, None)
    for side, attributes in (("before", before), ("after", after)):
        if group is None or group[0] != side:
            yield b',"%s":%s' % (side.encode(), dump(attributes))
            continue
        separator = b"," if attributes else b""
        yield b',"%s":%s%s"payload_iovs":' % (side.encode(), dump(attributes)[:-1], separator)
        yield from _array((dump(row),) for row in group[1])
        yield b"}"
        group = next(groups, None)
    yield b"}"


class ByParent:
    """A stream of documents that are sorted by parent. `parent_key` is their member with the name of the parent."""

    def __init__(self, documents: Iterator[Document], parent_key: str) -> None:
        self._documents = documents
        self._parent_key = parent_key
        self._next = next(self._documents, None)

    def of(self, parent: Document) -> Iterator[Document]:
        """The documents of `parent`; it may have none.

        Parents must be passed in the order of the stream. Consume the iterator before the next call.
        """
        while self._next is not None and self._next[self._parent_key] == parent["name"]:
            yield self._next
            self._next = next(self._documents, None)


def _global_tags(rows: QuerySet[GlobalTag], note: Callable[[Document], None] | None = None) -> Iterator[Element]:
    also = ("version", "modified", "payload_iov_count") if note else ()
    tags = documents(NestedGlobalTag, rows.order_by("id"), also)
    if note:
        for tag in tags:
            note(tag)
    ids = [tag["id"] for tag in tags]
    lists = ByParent(
        stream_documents(
            NestedPayloadList, PayloadList.objects.filter(global_tag__in=ids).order_by("global_tag_id", "id")
        ),
        "global_tag",
    )
    iovs = ByParent(
        stream_documents(
            PayloadIOVDocument,
            PayloadIOV.objects.filter(payload_list__global_tag__in=ids).order_by(
                "payload_list__global_tag_id", "payload_list_id", "comb_iov"
            ),
        ),
        "payload_list",
    )
    for tag in tags:
        yield nested(tag, "payload_lists", (with_iovs(found, iovs) for found in lists.of(tag)))


def _payload_lists(rows: QuerySet[PayloadList]) -> Iterator[Element]:
    lists = stream_documents(NestedPayloadList, rows.order_by("id"))
    iovs = ByParent(
        stream_documents(
            PayloadIOVDocument, PayloadIOV.objects.filter(payload_list__in=rows).order_by("payload_list_id", "comb_iov")
        ),
        "payload_list",
    )
    for found in lists:
        yield with_iovs(found, iovs)


def with_iovs(found: Document, iovs: ByParent) -> Element:
    """A payload list as JSON with its IOVs, which are the next ones of `iovs`."""
    return nested(found, "payload_iov", ((dump(iov),) for iov in iovs.of(found)))


def nested(document: Document, key: str, elements: Iterable[Element]) -> Element:
    """The document as JSON, with `elements` as the array of the member `key`, which is not the first or the last."""
    keys = list(document)
    place = keys.index(key)
    before = dump({name: document[name] for name in keys[:place]})
    after = dump({name: document[name] for name in keys[place + 1 :]})
    yield b'%s,"%s":' % (before[:-1], key.encode())
    yield from _array(elements)
    yield b"," + after[1:]


def _array(elements: Iterable[Element]) -> Generator[bytes]:
    yield b"["
    for index, element in enumerate(elements):
        if index:
            yield b","
        yield from element
    yield b"]"


def _first(elements: Iterator[Element], missing: NotFoundError) -> Generator[bytes]:
    element = next(elements, None)
    if element is None:
        raise missing
    yield from element


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
        for piece in pieces:
            gathered.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield b"".join(gathered)
                gathered, size = [], 0
        yield b"".join(gathered)


class Body:
    """The pieces of a body. The constructor produces the first two and raises their errors.

    So an early error can still become an error response. `is_whole` is True if there are fewer than two pieces.
    """

    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces = pieces
        self._prefetched = list(itertools.islice(pieces, 2))
        self.is_whole = len(self._prefetched) < 2

    def __iter__(self) -> Iterator[bytes]:
        yield from self._prefetched
        yield from self._pieces

    def close(self) -> None:
        """Close the generator of the pieces, which ends its transaction. Django calls it at the response's end."""
        self._pieces.close()
