"""Streamed responses about global tags, payload lists, payload IOVs and changes.

Global tags are held in memory; payload lists and IOVs are not. All rows come from one snapshot. One query reads all
rows of a kind, so the number of queries does not depend on the number of rows. `cdb_rest.api.json_stream` sends them.
"""

from collections.abc import Callable, Generator, Iterator, Mapping

from django.db.models import QuerySet
from django.http import HttpResponseBase

from cdb_rest.api.conversion import document_of, documents, stream_documents
from cdb_rest.api.documents import ChangeItem, Document, NestedGlobalTag, NestedPayloadList, PayloadIOVDocument
from cdb_rest.api.json import dump
from cdb_rest.api.json_stream import UNBUFFERED, Element, array, first, nested, respond
from cdb_rest.history.changes import read_change
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, PayloadList
from cdb_rest.models.global_tag import GlobalTagQuerySet
from cdb_rest.rules.errors import NotFoundError

# Nested responses of larger tags (about 300 bytes for each IOV) are not cached by nginx, to save its space.
MAX_CACHED_IOVS = 20_000


def payload_iovs(rows: QuerySet[PayloadIOV]) -> HttpResponseBase:
    """A JSON array of IOVs, ordered by id."""
    return respond(array((dump(iov),) for iov in stream_documents(PayloadIOVDocument, rows.order_by("id"))))


def payload_lists(rows: QuerySet[PayloadList]) -> HttpResponseBase:
    """A JSON array of payload lists, ordered by id, each with its IOVs, ordered by start."""
    return respond(array(_payload_lists(rows)))


def payload_list(rows: QuerySet[PayloadList], missing: NotFoundError) -> HttpResponseBase:
    """A JSON object: the payload list in `rows` with the lowest id, with its IOVs, ordered by start.

    Raises `missing` if `rows` is empty. `rows` should match only one list.
    """
    return respond(first(_payload_lists(rows), missing))


def global_tags(rows: QuerySet[GlobalTag]) -> HttpResponseBase:
    """A JSON array of global tags with their payload lists, both ordered by id, and their IOVs, ordered by start."""
    return respond(array(_global_tags(rows)))


def global_tag(rows: QuerySet[GlobalTag], missing: NotFoundError) -> HttpResponseBase:
    """A JSON object: the global tag in `rows` with the lowest id, with its payload lists and their IOVs.

    Raises `missing` if `rows` is empty. `rows` should match only one tag.
    """
    return respond(first(_global_tags(rows), missing))


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
    response = respond(first(_global_tags(rows.with_version(), note), missing))
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
        yield from array((dump(row),) for row in group[1])
        yield b"}"
        group = next(groups, None)
    yield b"}"


class ByParent:
    """A stream of documents that are sorted by parent. `parent_key` is their member with the name of the parent."""

    def __init__(self, documents: Iterator[Document], parent_key: str) -> None:
        self._documents = documents
        self._parent_key = parent_key
        self._next = next(self._documents, None)

    def has(self, parent: Document) -> bool:
        """Whether `parent`, which is the next one in the order of the stream, has documents."""
        return self._next is not None and bool(self._next[self._parent_key] == parent["name"])

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
