"""Responses about whole global tags: differences, affected moments, coverage, uses, reasons, and many lookups.

All rows of a response come from one snapshot. While the database works, newlines between the members of the response show
that it is being made.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from cdb_rest.analysis.affected import AffectedIntervals, AffectedMoments
from cdb_rest.analysis.contents import interval_between, read_contents
from cdb_rest.analysis.coverage import TypeCoverage, coverage
from cdb_rest.analysis.difference import Comparison, Key, TypeSummary, difference_lines, summaries
from cdb_rest.analysis.difference import differences as differences_of
from cdb_rest.analysis.explanation import Explanation, explain
from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.api.documents import Document
from cdb_rest.api.json import dump
from cdb_rest.api.json_stream import array, array_of_lines, respond, respond_cached
from cdb_rest.domain.as_of import AsOf
from cdb_rest.domain.errors import PayloadListNotFoundError
from cdb_rest.domain.moment import Interval, Mode, Moment
from cdb_rest.http.caching import REVISION_HEADER, combined, revisions_of
from cdb_rest.lookup.many import look_up_many
from cdb_rest.lookup.model import LookupQuery, State
from cdb_rest.lookup.queries import read_state
from cdb_rest.lookup.stack import Stack
from cdb_rest.models import GlobalTagChange
from cdb_rest.services.export import Selection, take_slot

# Requests for more lookups need a slot, like an export.
FREE_LOOKUPS = 1000
# A global tag, in the present or in the past.
TagState = tuple[str, AsOf | None]


@dataclass(frozen=True, slots=True)
class Scope:
    """Two tags to compare, one payload type or all (None), the window, and the key of the comparison."""

    a: TagState
    b: TagState
    payload_type: str | None
    window: Interval
    key: Key = Key.URL

    def read(self) -> Comparison:
        """The contents of the tags. Raises the errors of `read_contents`; a payload type may be missing in one tag."""
        contents = [read_contents(*tag, self.payload_type, may_lack_list=True) for tag in (self.a, self.b)]
        if self.payload_type is not None and not any(one.lists for one in contents):
            raise PayloadListNotFoundError(f"of type {self.payload_type} in global tag {self.a[0]} or {self.b[0]}")
        return Comparison(contents[0], contents[1], self.window, self.key)


def differences(request: HttpRequest, scope: Scope, digest: str) -> HttpResponseBase:
    """A JSON array of the differences, one per line, by payload type in byte order, then by start."""

    def read() -> tuple[State, Iterator[bytes]]:
        comparison = scope.read()
        return _state_of(comparison), array_of_lines(difference_lines(comparison))

    return respond_cached(request, read, digest)


def summary(request: HttpRequest, scope: Scope, digest: str) -> HttpResponseBase:
    """A JSON object: the payload types that differ, and the number of differences."""
    total = 0

    def documents(batches: Iterable[list[TypeSummary]]) -> Iterator[list[Document]]:
        nonlocal total
        for batch in batches:
            total += sum(one.differences for one in batch)
            yield [_summary_document(one) for one in batch]

    def read() -> tuple[State, Iterator[bytes]]:
        comparison = scope.read()
        return _state_of(comparison), _object(
            "payload_types", documents(summaries(comparison)), lambda: {"differences": total}
        )

    return respond_cached(request, read, digest)


def affected(scope: Scope, moments: Sequence[Moment] | None) -> HttpResponseBase:
    """A JSON object: which of the moments have different payloads; without moments, in which intervals payloads differ."""

    def pieces() -> Generator[bytes]:
        found = AffectedIntervals() if moments is None else AffectedMoments(moments)
        for number, batch in enumerate(differences_of(scope.read())):
            if number:
                yield b"\n"
            found.add(batch)
        if isinstance(found, AffectedIntervals):
            types, intervals = found.found()
            yield dump(
                {
                    "affected": len(intervals),
                    "payload_types": types,
                    "intervals": [_interval_document(one) for one in intervals],
                }
            )
            return
        groups = found.found()
        documents = [{"payload_types": types, "moments": [list(one) for one in hit]} for types, hit in groups]
        yield dump({"affected": sum(len(hit) for _, hit in groups), "groups": documents})

    return respond(pieces())


def covered(request: HttpRequest, selection: Selection, required: Collection[str], digest: str) -> HttpResponseBase:
    """A JSON object: the coverage of a window by each payload type of a tag, and by those that are `required`."""
    complete = True

    def documents(batches: Iterable[list[TypeCoverage]]) -> Iterator[list[Document]]:
        nonlocal complete
        for batch in batches:
            complete = complete and not any(one.gaps for one in batch)
            yield [_coverage_document(one) for one in batch]

    def read() -> tuple[State, Iterator[bytes]]:
        contents = read_contents(selection.global_tag, selection.as_of, selection.payload_type)
        rows = documents(coverage(contents, selection.window, required))
        return contents.state, _object("payload_types", rows, lambda: {"complete": complete})

    return respond_cached(request, read, digest)


def used(payload: Payload, *, with_removed: bool) -> HttpResponseBase:
    """A JSON array of the uses of payloads, in the order of `uses.sql`."""

    def pieces() -> Generator[bytes]:
        yield from array((dump(_use_document(row)),) for row in uses(payload, with_removed=with_removed))

    return respond(pieces())


def explained(request: HttpRequest, query: LookupQuery, payload_type: str | None, digest: str) -> HttpResponseBase:
    """A JSON array of the reasons for the result of a strict lookup, by payload type in byte order."""

    def read() -> tuple[State, Iterator[bytes]]:
        state, found = explain(tag=query.tag, moment=query.moment, payload_type=payload_type, as_of=query.as_of)
        return state, iter((dump([_explanation_document(one) for one in found]),))

    return respond_cached(request, read, digest)


def lookups(queries: Sequence[LookupQuery], moments: Sequence[Moment]) -> HttpResponseBase:
    """A JSON array of the results at the moments, with the revisions of the tags."""
    headers: dict[str, str] = {}

    def elements(stack: Stack) -> Iterator[tuple[bytes, ...]]:
        for found in look_up_many(stack, moments):
            if found.body is None:
                yield (dump({"moments": [list(one) for one in found.moments], "same_as": found.same_as}),)
            else:
                yield b'{"moments":', dump([list(one) for one in found.moments]), b',"rows":', found.body, b"}"

    def pieces() -> Generator[bytes]:
        if len(queries) * len(moments) > FREE_LOOKUPS:
            take_slot()
        states = [read_state(query.tag, query.as_of) for query in queries]
        headers[REVISION_HEADER] = revisions_of(combined(states))
        yield from array(elements(Stack(queries)))

    response = respond(pieces())
    for name, value in headers.items():
        response[name] = value
    return response


def _state_of(comparison: Comparison) -> State:
    return combined([comparison.a.state, comparison.b.state])


def _object(name: str, batches: Iterable[list[Document]], rest: Callable[[], Document]) -> Generator[bytes]:
    """A JSON object: an array of documents, and the members that `rest` returns after them."""
    yield b'{"%s":[' % name.encode()
    separator = b""
    for batch in batches:
        for one in batch:
            yield separator + dump(one)
            separator = b","
        # The database may work for seconds before the next batch.
        yield b"\n"
    yield b"]," + dump(rest())[1:]


def _interval_document(interval: Interval) -> Document:
    since, until = interval.on_wire(Mode(settings.CDB_IOV_MODE))
    return {"since": list(since), "until": list(until)}


def _summary_document(found: TypeSummary) -> Document:
    return {
        "payload_type": found.payload_type,
        "differences": found.differences,
        "first": _interval_document(interval_between(*found.first)),
        "last": _interval_document(interval_between(*found.last)),
    }


def _coverage_document(found: TypeCoverage) -> Document:
    extent = {"since": None, "until": None} if found.extent is None else _interval_document(found.extent)
    return {
        "payload_type": found.payload_type,
        "has_payload_list": found.has_list,
        "covered": found.covered,
        "first_start": extent["since"],
        "last_end": extent["until"],
        "gaps": [_interval_document(gap) for gap in found.gaps],
    }


# The members of a row, with their columns in the statements of the analysis.
ROW_MEMBERS = {"payload_url": "payload_url", "checksum": "checksum", "size": "size", "revision": "extra"} | {
    name: name for name in ("major_iov", "minor_iov", "major_iov_end", "minor_iov_end")
}


def _row_document(row: Mapping[str, Any] | None) -> Document | None:
    return None if row is None else {name: row[column] for name, column in ROW_MEMBERS.items()}


def _change_document(change: GlobalTagChange | None) -> Document | None:
    if change is None:
        return None
    return {
        "revision": change.revision,
        "time": change.created,
        "actor": change.actor,
        "action": change.action,
        "comment": change.comment,
    }


def _explanation_document(found: Explanation) -> Document:
    return {
        "payload_type": found.payload_type,
        "payload_list": found.payload_list,
        "reason": found.reason,
        "payload_iov": _row_document(found.row),
        "change": _change_document(found.change),
        "replaced": _row_document(found.replaced),
    }


def _use_document(row: dict[str, Any]) -> Document:
    names = ("global_tag", "payload_type", "payload_list")
    removed = {name: row[f"removed_{name}"] for name in ("revision", "time", "actor", "action", "comment")}
    return {
        **{name: row[name] for name in names},
        **{name: row[name] for name in ROW_MEMBERS},
        "removed": removed if removed["revision"] is not None else None,
    }
