"""Ranges: the payload IOVs of a global tag that start, or are valid, in a range of moments.

All rows of a response come from one snapshot, and it is streamed. With HTTP/1.0 a response has no validators, because a
truncated one must not be cached.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.http import HttpResponseBase, QueryDict
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from cdb_rest.api.base.conversion import Document, stream_documents
from cdb_rest.api.base.descriptions import AS_OF, NUMBER, TEXT, required, response_example
from cdb_rest.api.base.json import dump
from cdb_rest.api.base.json_stream import array, respond_cached
from cdb_rest.api.base.views import StrictView
from cdb_rest.api.base.windows import PAYLOAD_TYPE_PARAMETERS, WINDOW, RowDocument, SpanDocument, read_window
from cdb_rest.api.examples import NESTED_PAYLOAD_LIST, VALID_PAYLOAD_IOV
from cdb_rest.api.nested import ByParent, NestedPayloadList, documents_of_iovs, documents_of_lists, with_iovs
from cdb_rest.exports.export import Selection, check_payload_types, find_source
from cdb_rest.exports.validity import ValidRow, overlaid, valid_rows
from cdb_rest.history.contents import find_past, past_lists, present_lists
from cdb_rest.http.caching import Resource, combined
from cdb_rest.http.lookup import read_tags
from cdb_rest.lookup.model import State, past_state
from cdb_rest.lookup.shared_reads import read_state
from cdb_rest.models import PayloadList
from cdb_rest.parsing.parameters import PAST, PAYLOAD_TYPES, parse_as_of, parse_moment, parse_payload_types, parse_tag
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import OPEN, Mode, Moment


class ValidPayloadIOV(RowDocument, SpanDocument):
    """A payload IOV with the part of a window in which it is valid: `since` and `until`, each as [major, minor].

    The end of the part is written like the ends of IOVs: exclusive or inclusive, depending on the mode.
    """

    payload_type = serializers.CharField()


class Range(NamedTuple):
    """A global tag, the first and the last moment of a range, the past state that is asked for, if any, and payload types.

    Without payload types, all of them are asked for.
    """

    tag: str
    first: Moment
    last: Moment
    as_of: AsOf | None
    payload_types: tuple[str, ...]


def starts_in_range(asked: Range) -> tuple[State, Iterator[bytes]]:
    """A JSON array of the tag's payload lists, ordered by id, each with its IOVs that start in the range, by start.

    Lists without such an IOV are left out.
    """
    state, lists, iovs = _present(asked) if asked.as_of is None else _past(asked, asked.as_of)
    by_list = ByParent(iovs, "payload_list")
    return state, array(with_iovs(found, by_list) for found in lists if by_list.has(found))


def valid_parts(selections: Sequence[Selection]) -> tuple[State, Iterator[bytes]]:
    """A JSON array of the IOVs that are valid somewhere in the window, each with the part in which it is valid.

    They are ordered by payload type in byte order, then by start. The selections differ in the tag and the past state
    only. With several of them, the first tag that has a valid IOV decides, and elements name their tag. Raises the errors
    of `find_source`.
    """
    mode = Mode(settings.CDB_IOV_MODE)
    found = [_valid_rows(selection, is_only=len(selections) == 1) for selection in selections]
    rows = found[0][1] if len(found) == 1 else overlaid([rows for _, rows in found])
    return combined([state for state, _ in found]), array((dump(_document(row, mode)),) for row in rows)


def _valid_rows(selection: Selection, *, is_only: bool) -> tuple[State, Iterator[ValidRow]]:
    """The state of the selected tag, and its rows; if it is not the only one, the rows have its name."""
    tag, as_of = selection.global_tag, selection.as_of
    source = find_source(selection)
    past = source.past
    state = read_state(tag, None) if past is None or as_of is None else past_state(past.version, as_of)
    name = {} if is_only else {"global_tag": tag}
    return state, (ValidRow(name | row.columns, row.part) for row in valid_rows(source, selection.window))


def _document(row: ValidRow, mode: Mode) -> Document:
    since, until = row.part.on_wire(mode)
    return row.columns | {"since": list(since), "until": list(until)}


def _present(asked: Range) -> tuple[State, Iterator[Document], Iterator[Document]]:
    state = read_state(asked.tag, None)
    lists = PayloadList.objects.filter(global_tag__name=asked.tag)
    if asked.payload_types:
        check_payload_types(asked.payload_types)
        lists = lists.filter(payload_type__name__in=asked.payload_types)
    lists = lists.order_by("id")
    iovs = documents_of_iovs(present_lists(lists), (asked.first, asked.last))
    return state, stream_documents(NestedPayloadList, lists), iovs


def _past(asked: Range, as_of: AsOf) -> tuple[State, Iterator[Document], Iterator[Document]]:
    found = find_past(asked.tag, as_of)
    lists = past_lists(found)
    if asked.payload_types:
        check_payload_types(asked.payload_types, {item.payload_type for item in lists})
        lists = [item for item in lists if item.payload_type in asked.payload_types]
    iovs = documents_of_iovs(lists, (asked.first, asked.last))
    return past_state(found.version, as_of), documents_of_lists(found, lists), iovs


START, END = ("startMajorIOV", "startMinorIOV"), ("endMajorIOV", "endMinorIOV")
# As an end: no limit.
UNLIMITED = "-1"
END_NUMBER = NUMBER | {"minimum": -1}
RANGE = [
    required("gtName", TEXT, "Name of the global tag.", "tiny"),
    required("startMajorIOV", NUMBER, "Major part of the first moment.", 0),
    required("startMinorIOV", NUMBER, "Minor part of the first moment.", 0),
    required("endMajorIOV", END_NUMBER, "Major part of the last moment; -1: the range has no end.", 1),
    required("endMinorIOV", END_NUMBER, "Minor part of the last moment; -1: the last one of the major part.", -1),
]
VALID = [required("gtName", TEXT, "Name of the global tag.", "tiny"), *WINDOW, *AS_OF]


class PayloadIOVRangeView(APIView):
    """The payload lists of the global tag, each with its IOVs that start in the range, ordered by start.

    The range includes both of its ends. Payload lists without such an IOV are left out. An IOV that started before the
    range is not included, even if it is valid in it.
    """

    known = {"GET": (*PAST, *PAYLOAD_TYPES)}
    repeatable = PAYLOAD_TYPES

    @extend_schema(
        summary="List the IOVs that start in a range",
        parameters=[*RANGE, *PAYLOAD_TYPE_PARAMETERS, *AS_OF],
        responses=NestedPayloadList(many=True),
        examples=[response_example(NESTED_PAYLOAD_LIST)],
    )
    def get(self, request: Request) -> HttpResponseBase:
        asked = _read_range(request.query_params)
        types = (asked.payload_types,) if asked.payload_types else ()
        parts = (*asked.first, *asked.last, settings.CDB_IOV_MODE, *types)
        resource = Resource.range(asked.tag, asked.as_of, *parts)
        return respond_cached(request, resource, partial(starts_in_range, asked))


class ValidPayloadIOVView(StrictView):
    """The IOVs of the global tag that are valid somewhere in a window, each with the part in which it is valid.

    `since` and `until` of an element are that part: a strict lookup returns this IOV at its moments, and no other one of
    the payload type. The elements are ordered by payload type in byte order, then by start.

    `gtName` may be given several times, as in a lookup: the first tag that has a valid IOV decides. Then elements have a
    member `global_tag`, and an IOV comes once for each of its parts.
    """

    query = VALID
    repeatable = ("gtName", "rev", *PAYLOAD_TYPES)

    @extend_schema(
        summary="List the IOVs that are valid in a window",
        parameters=VALID,
        responses=ValidPayloadIOV(many=True),
        examples=[response_example(VALID_PAYLOAD_IOV)],
    )
    def get(self, request: Request) -> HttpResponseBase:
        lists = dict(request.query_params.lists())
        tags, types = read_tags(lists), parse_payload_types(lists)
        window = read_window(request.query_params)
        resource = Resource.tags("valid", tags, types, *window.start, *window.end, settings.CDB_IOV_MODE)
        selections = [Selection(tag, types, window, as_of) for tag, as_of in tags]
        return respond_cached(request, resource, partial(valid_parts, selections))


def _read_range(query: QueryDict) -> Range:
    tag = parse_tag(query)
    first = parse_moment(START, (query.get(START[0]), query.get(START[1])))
    major, minor = query.get(END[0]), query.get(END[1])
    if major == UNLIMITED:
        major, minor = str(OPEN), UNLIMITED
    last = parse_moment(END, (major, str(OPEN) if minor == UNLIMITED else minor))
    if last < first:
        raise invalid_field(END[0], f"The range from {first} to {last} is empty.")
    return Range(tag, first, last, parse_as_of(query), parse_payload_types(dict(query.lists())))
