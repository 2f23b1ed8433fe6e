"""Responses for the payload IOVs of a global tag in a range of moments, in the present or in the past.

All rows of a response come from one snapshot, and it is streamed. With HTTP/1.0 a response has no validators, because a
truncated one must not be cached. The functions raise `GlobalTagNotFoundError` and the errors of `find_past`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from cdb_rest.api import past
from cdb_rest.api.conversion import stream_documents
from cdb_rest.api.documents import Document, NestedPayloadList, PayloadIOVDocument
from cdb_rest.api.json import dump
from cdb_rest.api.json_stream import Element, array, respond_cached
from cdb_rest.api.streams import ByParent, with_iovs
from cdb_rest.exports.export import Selection, find_source
from cdb_rest.exports.validity import ValidRow, overlaid, valid_rows
from cdb_rest.history.contents import past_lists
from cdb_rest.history.revisions import find_past
from cdb_rest.http.caching import combined
from cdb_rest.lookup.model import State, past_state
from cdb_rest.lookup.states import read_state
from cdb_rest.models import PayloadIOV, PayloadList
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import PayloadListNotFoundError
from cdb_rest.rules.moment import Mode, Moment


class Range(NamedTuple):
    """A global tag, the first and the last moment of a range, and the past state that is asked for, if any."""

    tag: str
    first: Moment
    last: Moment
    as_of: AsOf | None


def payload_lists(request: HttpRequest, asked: Range, digest: str) -> HttpResponseBase:
    """A JSON array of the tag's payload lists, ordered by id, each with its IOVs that start in the range, by start.

    Lists without such an IOV are left out.
    """

    def read() -> tuple[State, Iterator[Element]]:
        state, lists, iovs = _present(asked) if asked.as_of is None else _past(asked, asked.as_of)
        return state, _with_iovs(lists, ByParent(iovs, "payload_list"))

    return _respond(request, read, digest)


def valid_parts(request: HttpRequest, selections: Sequence[Selection], digest: str) -> HttpResponseBase:
    """A JSON array of the IOVs that are valid somewhere in the window, each with the part in which it is valid.

    They are ordered by payload type in byte order, then by start. The selections differ in the tag and the past state
    only. With several of them, the first tag that has a valid IOV decides, and elements name their tag. Also raises the
    other errors of `find_source`; a payload type may be missing in some of the tags.
    """
    mode = Mode(settings.CDB_IOV_MODE)

    def read() -> tuple[State, Iterator[Element]]:
        found = [_valid_rows(one, is_only=len(selections) == 1) for one in selections]
        rows = found[0][1] if len(found) == 1 else overlaid([rows for _, rows in found])
        return combined([state for state, _ in found]), ((dump(_document(row, mode)),) for row in rows)

    return _respond(request, read, digest)


def _valid_rows(selection: Selection, *, is_only: bool) -> tuple[State, Iterator[ValidRow]]:
    """The state of the selected tag, and its rows; if it is not the only one, the rows have its name."""
    tag, as_of = selection.global_tag, selection.as_of
    try:
        source = find_source(selection)
    except PayloadListNotFoundError:
        if is_only:
            raise
        return read_state(tag, as_of), iter(())
    past = source.past
    state = read_state(tag, None) if past is None or as_of is None else past_state(past.version, as_of)
    name = {} if is_only else {"global_tag": tag}
    return state, (ValidRow(name | row.columns, row.part) for row in valid_rows(source, selection.window))


def _document(row: ValidRow, mode: Mode) -> Document:
    since, until = row.part.on_wire(mode)
    return row.columns | {"since": list(since), "until": list(until)}


def _respond(
    request: HttpRequest, read: Callable[[], tuple[State, Iterator[Element]]], digest: str
) -> HttpResponseBase:
    """A JSON array of the elements that `read` returns, with the caching headers of the state that it read."""

    def read_pieces() -> tuple[State, Iterator[bytes]]:
        state, elements = read()
        return state, array(elements)

    return respond_cached(request, read_pieces, digest)


def _with_iovs(lists: Iterator[Document], iovs: ByParent) -> Iterator[Element]:
    return (with_iovs(found, iovs) for found in lists if iovs.has(found))


def _present(asked: Range) -> tuple[State, Iterator[Document], Iterator[Document]]:
    iovs = PayloadIOV.objects.filter(
        payload_list__global_tag__name=asked.tag, comb_iov__range=(asked.first.combined, asked.last.combined)
    )
    return (
        read_state(asked.tag, None),
        stream_documents(NestedPayloadList, PayloadList.objects.filter(global_tag__name=asked.tag).order_by("id")),
        stream_documents(PayloadIOVDocument, iovs.order_by("payload_list_id", "comb_iov")),
    )


def _past(asked: Range, as_of: AsOf) -> tuple[State, Iterator[Document], Iterator[Document]]:
    found = find_past(asked.tag, as_of)
    lists = past_lists(found)
    iovs = past.documents_of_iovs(lists, (asked.first, asked.last))
    return past_state(found.version, as_of), past.documents_of_lists(found, lists), iovs
