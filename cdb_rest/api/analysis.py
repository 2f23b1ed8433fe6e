"""Responses about whole global tags: differences, affected moments, coverage, uses of payloads, and reasons.

All rows of a response come from one snapshot. While the database works, newlines between the members of the response show
that it is being made.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from django.http import HttpRequest, HttpResponseBase

from cdb_rest.analysis.affected import AffectedIntervals, AffectedMoments
from cdb_rest.analysis.coverage import Selection, TypeCoverage, coverage
from cdb_rest.analysis.difference import Comparison, Scope, TypeSummary, difference_lines, summaries
from cdb_rest.analysis.difference import differences as differences_of
from cdb_rest.analysis.explanation import explain
from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.api.analysis_documents import (
    coverage_document,
    explanation_document,
    interval_document,
    summary_document,
    use_document,
)
from cdb_rest.api.documents import Document
from cdb_rest.api.json import dump
from cdb_rest.api.json_stream import array, array_of_lines, respond, respond_cached
from cdb_rest.http.caching import combined
from cdb_rest.lookup.model import State
from cdb_rest.rules.as_of import TagState
from cdb_rest.rules.moment import Moment


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
            yield [summary_document(one) for one in batch]

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
                    "intervals": [interval_document(one) for one in intervals],
                }
            )
            return
        groups = found.found()
        documents = [{"payload_types": types, "moments": [list(one) for one in hit]} for types, hit in groups]
        yield dump({"affected": sum(len(hit) for _, hit in groups), "groups": documents})

    return respond(pieces())


def covered(request: HttpRequest, selection: Selection, digest: str) -> HttpResponseBase:
    """A JSON object: the coverage of a window by each payload type of the tags, and by those that are required."""
    complete = True

    def documents(batches: Iterable[list[TypeCoverage]]) -> Iterator[list[Document]]:
        nonlocal complete
        for batch in batches:
            complete = complete and not any(one.gaps for one in batch)
            yield [coverage_document(one) for one in batch]

    def read() -> tuple[State, Iterator[bytes]]:
        contents = selection.read()
        rows = documents(coverage(contents, selection))
        return combined(contents.states), _object("payload_types", rows, lambda: {"complete": complete})

    return respond_cached(request, read, digest)


def used(payload: Payload, *, with_removed: bool) -> HttpResponseBase:
    """A JSON array of the uses of payloads, in the order of `uses` (sql/analysis.sql)."""

    def pieces() -> Generator[bytes]:
        yield from array((dump(use_document(row)),) for row in uses(payload, with_removed=with_removed))

    return respond(pieces())


def explained(
    request: HttpRequest, tags: Sequence[TagState], moment: Moment, payload_type: str | None, digest: str
) -> HttpResponseBase:
    """A JSON array of the reasons for the result of a strict lookup, by payload type in byte order, then by tag."""

    def read() -> tuple[State, Iterator[bytes]]:
        states, found = explain(tags=tags, moment=moment, payload_type=payload_type)
        return combined(states), iter((dump([explanation_document(one) for one in found]),))

    return respond_cached(request, read, digest)


def _state_of(comparison: Comparison) -> State:
    return combined(comparison.a.states + comparison.b.states)


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
