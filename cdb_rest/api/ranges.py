"""Responses for the payload IOVs of a global tag that start in a range of moments, in the present or in the past."""

from collections.abc import Generator, Iterator
from typing import NamedTuple

from django.http import HttpRequest, HttpResponseBase

from cdb_rest.api import past
from cdb_rest.api.conversion import stream_documents
from cdb_rest.api.documents import Document, NestedPayloadList, PayloadIOVDocument
from cdb_rest.api.json_stream import Element, array, can_detect_truncation, respond
from cdb_rest.api.streams import ByParent, with_iovs
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import Moment
from cdb_rest.history.contents import past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.http.caching import REVISION_HEADER, headers_of
from cdb_rest.lookup.model import State, past_state
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList


class Range(NamedTuple):
    """A global tag, the first and the last moment of a range, and the past state that is asked for, if any."""

    tag: str
    first: Moment
    last: Moment
    as_of: AsOf | None


def payload_lists(request: HttpRequest, asked: Range, digest: str) -> HttpResponseBase:
    """A JSON array of the tag's payload lists, ordered by id, each with its IOVs that start in the range, by start.

    Lists without such an IOV are left out. It is streamed. With HTTP/1.0 it has no validators, because a truncated
    response must not be cached. Raises `GlobalTagNotFoundError` and the errors of `find_past`.
    """
    headers: dict[str, str] = {}

    def pieces() -> Generator[bytes]:
        state, lists, iovs = _present(asked) if asked.as_of is None else _past(asked, asked.as_of)
        headers.update(headers_of(state, digest))
        yield from array(_with_iovs(lists, ByParent(iovs, "payload_list")))

    response = respond(pieces())
    if not can_detect_truncation(request):
        headers = {REVISION_HEADER: headers[REVISION_HEADER]}
    for name, value in headers.items():
        response[name] = value
    return response


def _with_iovs(lists: Iterator[Document], iovs: ByParent) -> Iterator[Element]:
    return (with_iovs(found, iovs) for found in lists if iovs.has(found))


def _present(asked: Range) -> tuple[State, Iterator[Document], Iterator[Document]]:
    columns = ("id", "status__name", "version", "modified")
    tag = GlobalTag.objects.filter(name=asked.tag).with_version().values_list(*columns).first()
    if tag is None:
        raise GlobalTagNotFoundError(asked.tag)
    number, status, version, modified = tag
    iovs = PayloadIOV.objects.filter(
        payload_list__global_tag=number, comb_iov__range=(asked.first.combined, asked.last.combined)
    )
    return (
        State(version, status, modified),
        stream_documents(NestedPayloadList, PayloadList.objects.filter(global_tag=number).order_by("id")),
        stream_documents(PayloadIOVDocument, iovs.order_by("payload_list_id", "comb_iov")),
    )


def _past(asked: Range, as_of: AsOf) -> tuple[State, Iterator[Document], Iterator[Document]]:
    found = find_past(asked.tag, as_of)
    lists = past_lists(found)
    iovs = past.documents_of_iovs(lists, (asked.first, asked.last))
    return past_state(found.version, as_of), past.documents_of_lists(found, lists), iovs
