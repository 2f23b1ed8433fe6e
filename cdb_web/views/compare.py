"""The comparison of two global tags or revisions, and the gaps of a tag."""

from collections.abc import Callable, Mapping, Sequence

from django.http import HttpRequest, HttpResponse, QueryDict

from cdb_rest.analysis.affected import AffectedIntervals, AffectedMoments
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.coverage import Selection
from cdb_rest.analysis.coverage import coverage as coverage_of
from cdb_rest.analysis.difference import Comparison, Key, Scope, spans, summaries
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.moment import EVERYTHING
from cdb_web import inputs
from cdb_web.lanes import extent
from cdb_web.net_effect import first_differences
from cdb_web.page import newest_names, page, show_query, waiting
from cdb_web.templatetags.cdb_web import interval_end, moment_text

# Differences of one payload type, and affected intervals, on a page.
MAX_SHOWN = 200
FIELDS = ("a", "b", "rev_a", "rev_b", "by", "type", "since", "until", "moments")
# About so many IOVs are compared in a second.
ROWS_PER_SECOND = 500_000


@page
def compare(request: HttpRequest) -> HttpResponse:
    """The payload types that differ, with their numbers of differences; or one type's differences."""
    return _page(request, "compare", _compare)


@page
def affected(request: HttpRequest) -> HttpResponse:
    """The intervals in which two states differ; with `moments`, which of these moments are affected, by payload types."""
    return _page(request, "affected", _affected)


def _page(
    request: HttpRequest, name: str, result_of: Callable[[Comparison, Mapping[str, str]], dict[str, object]]
) -> HttpResponse:
    query, fields = request.GET, _fields(request.GET)

    def values(given: Mapping[str, str]) -> dict[str, object]:
        comparison = _read(given, query)
        if comparison is None:
            return {}
        sizes = [rows for _, rows, _ in comparison.pairs()]
        return waiting(query, sizes, ROWS_PER_SECOND) or result_of(comparison, given)

    fixed = {"values": fields, "names": newest_names(), "max_shown": MAX_SHOWN}
    return show_query(request, f"{name}.html", fixed, values, fields)


def _fields(query: QueryDict) -> dict[str, str]:
    """The fields of the form. The check boxes of the list of tags and of a history fill those that are not given.

    Without `b`, but with a revision, `b` is the tag `a`.
    """
    fields = {name: inputs.text(query, name) for name in FIELDS}
    revisions = sorted(query.getlist("rev"), key=lambda text: (len(text), text))
    for names, chosen in (("ab", query.getlist("tag")), (("rev_a", "rev_b"), revisions)):
        for name, one in zip(names, chosen, strict=False):
            fields[name] = fields[name] or one
    if not fields["b"] and (fields["rev_a"] or fields["rev_b"]):
        fields["b"] = fields["a"]
    return fields | {"by": fields["by"] if fields["by"] in [*Key] else Key.URL}


def _read(values: Mapping[str, str], query: QueryDict) -> Comparison | None:
    """What the fields of the form compare; None if there are no two tags yet. Raises also the errors of `Scope.read`."""
    if not values.get("b"):
        return None
    chosen = max(len(query.getlist("tag")), len(query.getlist("rev")))
    if chosen > 2:
        raise InvalidInputError(f"Choose two tags or two revisions (got {chosen}).")
    return Scope(
        [(values["a"], inputs.revision(values, "rev_a"))],
        [(values["b"], inputs.revision(values, "rev_b"))],
        [values["type"]] if values["type"] else (),
        inputs.window(values) or EVERYTHING,
        Key(values["by"]),
    ).read()


def _compare(comparison: Comparison, values: Mapping[str, str]) -> dict[str, object]:
    if values["type"]:
        rows, count = first_differences(comparison, MAX_SHOWN)
        return {"rows": rows, "count": count}
    types = [summary for batch in summaries(comparison) for summary in batch]
    return {
        "types": [(one, interval_between(*one.first), interval_between(*one.last)) for one in types],
        "total": sum(one.differences for one in types),
    }


def _affected(comparison: Comparison, values: Mapping[str, str]) -> dict[str, object]:
    moments = inputs.moments(values["moments"])
    found = AffectedMoments(moments) if moments else AffectedIntervals()
    for item in spans(comparison):
        found.add(item)
    if isinstance(found, AffectedMoments):
        groups = found.found()
        return {"groups": groups, "hit": sum(len(hit) for _, hit in groups), "asked": len({*moments})}
    types, intervals = found.found()
    return {"affected_types": types, "intervals": intervals[:MAX_SHOWN], "interval_count": len(intervals)}


# Gaps of a payload type on the page.
MAX_GAPS = 20
# About so many IOVs are checked in a second.
CHECKED_PER_SECOND = 200_000


@page
def coverage(request: HttpRequest, name: str) -> HttpResponse:
    """For each payload type the gaps in a window. With `type`, only those of one payload type.

    By default, the window begins at the first start in the tag, and ends at the last end or just after the last start.
    """
    names = [item.strip() for item in inputs.text(request.GET, "required").split(",")]
    required = [item for item in names if item]
    values = {item: inputs.text(request.GET, item) for item in ("since", "until", "rev", "type")}
    fixed = {"name": name, "values": values | {"required": ",".join(required)}}
    return show_query(request, "coverage.html", fixed, lambda query: _coverage(query, name, required))


def _coverage(query: Mapping[str, str], name: str, required: Sequence[str]) -> dict[str, object]:
    contents = inputs.contents(query, name)
    window = inputs.window(query) or extent([lists[0] for lists in contents.lists.values()])
    payload_type = inputs.text(query, "type")
    missing = [item for item in required if item not in contents.lists]
    if payload_type:
        contents = inputs.contents(query, name, payload_type)
    shown = waiting(query, [lists[0].rows for lists in contents.lists.values()], CHECKED_PER_SECOND)
    found = []
    if window is not None and not shown:
        # Payload types without a list come last.
        selection = Selection([(name, inputs.revision(query))], (), window, missing)
        found = [item for part in coverage_of(contents, selection) for item in part]
    return shown | {
        "window": window,
        "since": window and moment_text(window.start),
        "until": window and moment_text(interval_end(window)),
        "types": [(item, item.gaps[:MAX_GAPS], len(item.gaps) - MAX_GAPS) for item in found if item.gaps],
        "complete": [item.payload_type for item in found if not item.gaps],
    }
