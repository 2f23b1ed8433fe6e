"""Forms that show what a write would change for readers before they store it."""

from collections.abc import Callable
from typing import Any, Protocol

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, difference_lines, summaries
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import CdbError, InvalidInputError, TagChangedError
from cdb_rest.rules.moment import Interval
from cdb_rest.writes.effects import SHOWN, TypeEffects
from cdb_rest.writes.previews import preview
from cdb_web.page import problem_of, show
from cdb_web.writes import as_previewed, dry_run_origin, newest_revision, origin_of


class WriteService(Protocol):
    """A write service that changes one global tag, and records at most one change of it."""

    def __call__(self, *, origin: Origin) -> object: ...


def preview_and_store(
    request: HttpRequest, template: str, values: dict[str, Any], write: Callable[[], tuple[str, WriteService]]
) -> HttpResponse:
    """The page of a form. Its first POST shows what the write would change, and one with the field `planned` stores it.

    `write` reads the form, and returns the name of the tag and the service. It ends with the history of the tag.
    """
    values |= {"values": request.POST}
    if request.method != "POST":
        return show(request, template, values)
    problem: dict[str, Any] = {}
    status = 200
    try:
        tag, service = write()
        if "planned" in request.POST:
            origin = origin_of(request)
            try:
                as_previewed(request, tag, lambda: service(origin=origin))
                return HttpResponseRedirect(f"{reverse('web:history', args=[tag])}?new", status=303)
            except (InvalidInputError, TagChangedError) as error:
                # With the preview for the present state.
                problem, status = problem_of(error)
        # The revision is read first: if the tag changes now, the second POST is refused.
        planned, origin = newest_revision(tag), dry_run_origin(request)
        found = preview(tag, lambda: service(origin=origin), lambda _, comparison: changes_of(comparison))
        return show(request, template, values | {"planned": planned} | found | problem, status=status)
    except CdbError as error:
        problem, status = problem_of(error)
        return show(request, template, values | problem, status=status)


def changes_of(comparison: Comparison) -> dict[str, Any]:
    """The values of `changes.html`: what differs between the states of a tag. Call it in the transaction of the preview."""
    types = {}
    for batch in summaries(comparison):
        for one in batch:
            interval = Interval(interval_between(*one.first).start, interval_between(*one.last).end)
            types[one.payload_type] = TypeEffects(one.payload_type, interval=interval, difference_count=one.differences)
    return {
        "effects": list(types.values()),
        "differences": _first_lines(comparison),
        "difference_count": sum(one.difference_count for one in types.values()),
    }


def _first_lines(comparison: Comparison) -> list[dict[str, Any]]:
    """The documents of the first `SHOWN` differences."""
    rest, lines = b"", []
    for chunk in difference_lines(comparison):
        *more, rest = (rest + chunk).split(b"\n")
        lines += more
        if len(lines) >= SHOWN:
            break
    return [orjson.loads(line) for line in lines[:SHOWN]]
