"""The comparison of two global tags, or of two revisions."""

from collections.abc import Mapping
from dataclasses import replace

import orjson
from django.http import HttpRequest, HttpResponse, QueryDict

from cdb_rest.analysis.affected import AffectedIntervals, AffectedMoments
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, Key, Scope, difference_lines, spans, summary_of
from cdb_rest.rules.errors import InvalidInputError
from cdb_web import inputs
from cdb_web.batches import next_batch, size_of
from cdb_web.lanes import EVERYTHING
from cdb_web.page import newest_names, or_default, page, show_whole_or_part

# Differences of one payload type, and affected intervals, on a page.
MAX_SHOWN = 200
FIELDS = ("a", "b", "rev_a", "rev_b", "by", "type", "since", "until", "moments")
# For the size of batches: to compare an IOV takes this share of the time of other results.
SHARE = 0.2
# About so many IOVs are compared in a second. A page that needs more than two of them is there before its result.
ROWS_PER_SECOND = 500_000


@page
def compare(request: HttpRequest) -> HttpResponse:
    """The payload types that differ, with their numbers of differences, in batches; or one type's differences.

    If there is only one batch, the affected intervals are those of all payload types.
    """
    fields = _fields(request.GET)
    more, status = or_default(fields, lambda values: _compare(values, request.GET))
    fixed = {"values": fields, "names": newest_names(), "max_shown": MAX_SHOWN}
    return show_whole_or_part(request, "compare.html", "compare_rows.html", fixed | more, status=status)


@page
def affected(request: HttpRequest) -> HttpResponse:
    """The intervals in which two states differ; with `moments`, which of these moments are affected, by payload types.

    A result that takes longer is requested by the page, with `now`.
    """
    fields = _fields(request.GET)
    more, status = or_default(fields, lambda values: _affected(values, request.GET))
    fixed = {"values": fields, "names": newest_names(), "max_shown": MAX_SHOWN}
    return show_whole_or_part(request, "affected.html", "affected_result.html", fixed | more, status=status)


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


def _compare(values: Mapping[str, str], query: QueryDict) -> dict[str, object]:
    comparison = _read(values, query)
    if comparison is None:
        return {}
    if values["type"]:
        return _of_type(comparison)
    sizes = [(pair.payload_type, size_of(pair.a + pair.b) * SHARE) for _, _, pair in comparison.pairs()]
    batch = next_batch(query, sizes, comparison.a.states + comparison.b.states)
    if batch.has_changed:
        return {"batch": batch}
    part = replace(comparison, a=comparison.a.only(batch.names), b=comparison.b.only(batch.names))
    found, types = AffectedIntervals(), []
    for item in spans(part, each_pair=True):
        types += [summary_of(item)] if len(item.since.majors) else []
        if batch.is_all:
            found.add(item)
    shown = {
        "batch": batch,
        "types": [(summary, interval_between(*summary.first), interval_between(*summary.last)) for summary in types],
        "total": sum(summary.differences for summary in types),
    }
    return shown | (_intervals(found) if batch.is_all else {})


def _of_type(comparison: Comparison) -> dict[str, object]:
    """The first differences of the only payload type, and the number of all."""
    count, rest = 0, b""
    shown: list[bytes] = []
    for chunk in difference_lines(comparison):
        count += chunk.count(b"\n")
        if len(shown) < MAX_SHOWN:
            *lines, rest = (rest + chunk).split(b"\n")
            shown += lines
    return {"rows": [orjson.loads(line) for line in shown[:MAX_SHOWN]], "count": count}


def _affected(values: Mapping[str, str], query: QueryDict) -> dict[str, object]:
    comparison = _read(values, query)
    if comparison is None:
        return {}
    pairs = comparison.pairs()
    seconds = sum(size_of(pair.a + pair.b) for _, _, pair in pairs) // ROWS_PER_SECOND
    if seconds > 2 and "now" not in query:
        return {"seconds": seconds, "type_count": len(pairs)}
    moments = inputs.moments(values["moments"])
    if not moments:
        found = AffectedIntervals()
        for item in spans(comparison):
            found.add(item)
        return _intervals(found)
    at = AffectedMoments(moments)
    for item in spans(comparison):
        at.add(item)
    groups = at.found()
    return {"groups": groups, "hit": sum(len(hit) for _, hit in groups), "asked": len({*moments})}


def _intervals(found: AffectedIntervals) -> dict[str, object]:
    types, intervals = found.found()
    return {"affected_types": types, "intervals": intervals[:MAX_SHOWN], "interval_count": len(intervals)}
