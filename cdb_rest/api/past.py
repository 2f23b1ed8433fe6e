"""Responses about a global tag at an earlier revision or time, in the same format as for the present.

All rows of a response come from one snapshot, so that a response does not mix in rows that are pruned meanwhile. `digest` is
the digest of the query, for the ETag (`cdb_rest.http.caching`). The functions raise the errors of `find_past`.
"""

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from rest_framework.response import Response

from cdb_rest.api import streams
from cdb_rest.api.conversion import documents_from
from cdb_rest.api.documents import Document, GlobalTagItem, NestedGlobalTag, NestedPayloadList, PayloadIOVDocument
from cdb_rest.api.json_stream import UNBUFFERED, add_caching_headers, can_detect_truncation, nested, respond
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.history.contents import ALL_STARTS, PastList, past_counts, past_iovs, past_lists, past_tag
from cdb_rest.history.revisions import Past, find_past
from cdb_rest.http.caching import headers_of
from cdb_rest.lookup.model import past_state
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import Moment


def payload_lists(name: str, as_of: AsOf, digest: str) -> Response:
    """The names of the payload lists of a tag, by payload type."""
    with snapshot():
        past = find_past(name, as_of)
        lists = past_lists(past)
    names = {one.payload_type: one.name for one in lists}
    return Response(dict(sorted(names.items())), headers=_headers(past, as_of, digest))


def item(name: str, as_of: AsOf, digest: str) -> Response:
    """A tag with its numbers of payload lists and IOVs."""
    with snapshot():
        past = find_past(name, as_of)
        lists, iovs = past_counts(past)
        columns = _columns_of_tag(past)
    counts = {"payload_lists_count": lists, "payload_iov_count": iovs}
    return Response(next(documents_from(GlobalTagItem, [columns | counts])), headers=_headers(past, as_of, digest))


def nested_tag(request: HttpRequest, name: str, as_of: AsOf, digest: str) -> HttpResponseBase:
    """A tag with its payload lists and their IOVs. It is streamed, with the caching of `streams.conditional_global_tag`."""
    headers: dict[str, str] = {}

    def pieces() -> Generator[bytes]:
        past = find_past(name, as_of)
        headers.update(_headers(past, as_of, digest))
        if past_counts(past)[1] > streams.MAX_CACHED_IOVS:
            headers[UNBUFFERED] = "no"
        yield from _nested_tag(past)

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
    }


def documents_of_lists(past: Past, lists: list[PastList]) -> Iterator[Document]:
    """The nested documents of a tag's payload lists, without their IOVs."""
    columns = (
        {
            "id": one.id,
            "name": one.name,
            "global_tag__name": past.tag,
            "payload_type__name": one.payload_type,
            "created": one.created,
        }
        for one in lists
    )
    return documents_from(NestedPayloadList, columns)


def documents_of_iovs(lists: list[PastList], starts: tuple[Moment, Moment] = ALL_STARTS) -> Iterator[Document]:
    """The documents of the payload lists' IOVs that start in a range, in the order of the lists and then by start."""
    names = {one.id: one.name for one in lists}
    rows = past_iovs(lists, starts)
    return documents_from(
        PayloadIOVDocument, (row | {"payload_list__name": names[row["payload_list_id"]]} for row in rows)
    )


def _nested_tag(past: Past) -> Iterable[bytes]:
    lists = past_lists(past)
    iovs = streams.ByParent(documents_of_iovs(lists), "payload_list")
    return nested(
        next(documents_from(NestedGlobalTag, [_columns_of_tag(past)])),
        "payload_lists",
        (streams.with_iovs(found, iovs) for found in documents_of_lists(past, lists)),
    )
