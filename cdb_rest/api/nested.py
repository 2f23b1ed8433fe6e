"""Streamed responses with the contents of global tags and payload lists, now and at an earlier revision.

Global tags are held in memory; payload lists and IOVs are not. All rows come from one snapshot. One query reads all rows of a
kind, so the number of queries does not depend on the number of rows. `digest` is the digest of the query, for the ETag.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from rest_framework import serializers
from rest_framework.response import Response

from cdb_rest.api.base.conversion import Document, Shape, documents, documents_from, stream_documents
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import (
    UNBUFFERED,
    Element,
    add_caching_headers,
    array,
    can_detect_truncation,
    first,
    nested,
    respond,
)
from cdb_rest.api.payload_iovs import PayloadIOVDocument
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.history.contents import (
    ALL_STARTS,
    Past,
    TagList,
    find_past,
    iovs_of,
    past_counts,
    past_lists,
    past_tag,
    present_lists,
)
from cdb_rest.http.caching import headers_of
from cdb_rest.lookup.model import past_state
from cdb_rest.models import GlobalTag, PayloadList
from cdb_rest.models.global_tag import GlobalTagQuerySet
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import NotFoundError
from cdb_rest.rules.moment import Moment


class StatusDocument(Shape):
    """A status inside a nested global tag."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    created = serializers.DateTimeField()


class GlobalTagItem(Shape):
    """A global tag in a list, with its counts and its revision, for requests about the past."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    author = serializers.CharField()
    status = serializers.CharField(source="status.name")
    payload_lists_count = serializers.IntegerField()
    payload_iov_count = serializers.IntegerField()
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField()
    revision = serializers.IntegerField()


class LimitsShape(Shape):
    """The limits of a global tag for writes; null for none, and in the past."""

    closed_until = serializers.ListField(child=serializers.IntegerField(), allow_null=True)
    largest_major = serializers.IntegerField(allow_null=True)


class LightGlobalTag(GlobalTagItem, LimitsShape):
    """A global tag with its counts, its revision and its limits."""


class PayloadListDocument(Shape):
    """A payload list as a write returns it."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    global_tag = serializers.CharField(source="global_tag.name", allow_null=True)
    payload_type = serializers.CharField(source="payload_type.name")
    created = serializers.DateTimeField()


class NestedPayloadList(Shape):
    """A payload list with all its IOVs, ordered by start."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    global_tag = serializers.CharField(source="global_tag.name", allow_null=True)
    payload_type = serializers.CharField(source="payload_type.name")
    payload_iov = PayloadIOVDocument(many=True)
    created = serializers.DateTimeField()


class NestedGlobalTag(LimitsShape):
    """A global tag with all its payload lists and their IOVs, and its limits."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    author = serializers.CharField()
    status = StatusDocument()
    payload_lists = NestedPayloadList(many=True)
    created = serializers.DateTimeField()
    updated = serializers.DateTimeField()


# Nested responses of larger tags (about 300 bytes for each IOV) are not cached by nginx, to save its space.
MAX_CACHED_IOVS = 20_000


def stream_payload_lists(rows: QuerySet[PayloadList]) -> HttpResponseBase:
    """A JSON array of payload lists, ordered by id, each with its IOVs, ordered by start."""
    return respond(array(_payload_lists(rows)))


def stream_payload_list(rows: QuerySet[PayloadList], missing: NotFoundError) -> HttpResponseBase:
    """A JSON object: the payload list in `rows` with the lowest id, with its IOVs, ordered by start.

    Raises `missing` if `rows` is empty. `rows` should match only one list.
    """
    return respond(first(_payload_lists(rows), missing))


def stream_global_tags(rows: QuerySet[GlobalTag]) -> HttpResponseBase:
    """A JSON array of global tags with their payload lists, both ordered by id, and their IOVs, ordered by start."""
    return respond(array(_global_tags(rows)))


def stream_global_tag(rows: QuerySet[GlobalTag], missing: NotFoundError) -> HttpResponseBase:
    """A JSON object: the global tag in `rows` with the lowest id, with its payload lists and their IOVs.

    Raises `missing` if `rows` is empty. `rows` should match only one tag.
    """
    return respond(first(_global_tags(rows), missing))


def stream_cacheable_global_tag(
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
    for tag in tags:
        combined = tag["closed_until"]
        tag["closed_until"] = None if combined is None else list(Moment.from_combined(combined))
    if note:
        for tag in tags:
            note(tag)
    ids = [tag["id"] for tag in tags]
    found = PayloadList.objects.filter(global_tag__in=ids).order_by("global_tag_id", "id")
    lists = ByParent(stream_documents(NestedPayloadList, found), "global_tag")
    iovs = ByParent(documents_of_iovs(present_lists(found)), "payload_list")
    for tag in tags:
        yield nested(tag, "payload_lists", (with_iovs(one, iovs) for one in lists.of(tag)))


def _payload_lists(rows: QuerySet[PayloadList]) -> Iterator[Element]:
    lists = stream_documents(NestedPayloadList, rows.order_by("id"))
    iovs = ByParent(documents_of_iovs(present_lists(rows.order_by("id"))), "payload_list")
    for found in lists:
        yield with_iovs(found, iovs)


def with_iovs(found: Document, iovs: ByParent) -> Element:
    """A payload list as JSON with its IOVs, which are the next ones of `iovs`."""
    return nested(found, "payload_iov", ((dump(iov),) for iov in iovs.of(found)))


def past_payload_lists(name: str, as_of: AsOf, digest: str) -> Response:
    """The names of the payload lists of a tag, by payload type."""
    with snapshot():
        past = find_past(name, as_of)
        lists = past_lists(past)
    names = {payload_list.payload_type: payload_list.name for payload_list in lists}
    return Response(dict(sorted(names.items())), headers=_headers(past, as_of, digest))


def past_item(name: str, as_of: AsOf, digest: str) -> Response:
    """A tag with its numbers of payload lists and IOVs."""
    with snapshot():
        past = find_past(name, as_of)
        lists, iovs = past_counts(past)
        columns = _columns_of_tag(past)
    counts = {"payload_lists_count": lists, "payload_iov_count": iovs}
    return Response(next(documents_from(LightGlobalTag, [columns | counts])), headers=_headers(past, as_of, digest))


def past_nested_tag(request: HttpRequest, name: str, as_of: AsOf, digest: str) -> HttpResponseBase:
    """A tag with its payload lists and their IOVs. It is streamed, with the caching of `stream_cacheable_global_tag`."""
    headers: dict[str, str] = {}

    def pieces() -> Generator[bytes]:
        past = find_past(name, as_of)
        headers.update(_headers(past, as_of, digest))
        if past_counts(past)[1] > MAX_CACHED_IOVS:
            headers[UNBUFFERED] = "no"
        yield from _past_nested_tag(past)

    response = respond(pieces())
    if can_detect_truncation(request):
        # nginx may cache it, unless the header is among those that follow.
        del response[UNBUFFERED]
    add_caching_headers(request, response, headers)
    return response


def _headers(past: Past, as_of: AsOf, digest: str) -> dict[str, str]:
    return headers_of(past_state(past.version, as_of), digest)


def _columns_of_tag(past: Past) -> dict[str, Any]:
    tag = past_tag(past)
    return {
        "id": past.tag_id,
        "name": past.tag,
        "author": tag.author,
        "status__id": tag.status_id,
        "status__name": past.status,
        "status__description": tag.status_description,
        "status__created": tag.status_created,
        "created": tag.created,
        "updated": past.created,
        "revision": past.revision,
        "closed_until": None,
        "largest_major": None,
    }


def documents_of_lists(past: Past, lists: list[TagList]) -> Iterator[Document]:
    """The nested documents of a tag's payload lists, without their IOVs."""
    columns = (
        {
            "id": payload_list.id,
            "name": payload_list.name,
            "global_tag__name": past.tag,
            "payload_type__name": payload_list.payload_type,
            "created": payload_list.created,
        }
        for payload_list in lists
    )
    return documents_from(NestedPayloadList, columns)


def documents_of_iovs(lists: list[TagList], starts: tuple[Moment, Moment] = ALL_STARTS) -> Iterator[Document]:
    """The documents of the payload lists' IOVs that start in a range, in the order of the lists and then by start."""
    names = {payload_list.id: payload_list.name for payload_list in lists}
    rows = iovs_of(lists, starts)
    return documents_from(
        PayloadIOVDocument, (row | {"payload_list__name": names[row["payload_list_id"]]} for row in rows)
    )


def _past_nested_tag(past: Past) -> Iterable[bytes]:
    lists = past_lists(past)
    iovs = ByParent(documents_of_iovs(lists), "payload_list")
    return nested(
        next(documents_from(NestedGlobalTag, [_columns_of_tag(past)])),
        "payload_lists",
        (with_iovs(found, iovs) for found in documents_of_lists(past, lists)),
    )
