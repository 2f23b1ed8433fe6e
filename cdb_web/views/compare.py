"""The comparison of two global tags, or of two revisions."""

from collections.abc import Mapping
from dataclasses import replace

import orjson
from django.http import HttpRequest, HttpResponse, QueryDict

from cdb_rest.analysis.affected import AffectedIntervals
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, Key, Scope, difference_lines, spans, summaries
from cdb_rest.rules.errors import InvalidInputError
from cdb_web import inputs
from cdb_web.batches import next_batch, size_of
from cdb_web.lanes import EVERYTHING
from cdb_web.page import newest_names, or_default, page, show_whole_or_part

# Differences of one payload type, and affected intervals, on a page.
MAX_SHOWN = 200
FIELDS = ("a", "b", "rev_a", "rev_b", "by", "type", "since", "until", "affected")


@page
def compare(request: HttpRequest) -> HttpResponse:
    """The payload types that differ, with their numbers of differences, in batches; or one type's differences.

    The affected intervals are those of all payload types, so they are shown if there is only one batch, or with `affected`.
    """
    fields = _fields(request.GET)
    more, status = or_default(fields, lambda values: _compare(values, request.GET))
    fixed = {"values": fields, "names": newest_names(), "max_shown": MAX_SHOWN}
    return show_whole_or_part(request, "compare.html", "compare_rows.html", fixed | more, status=status)


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


def _compare(values: Mapping[str, str], query: QueryDict) -> dict[str, object]:
    """The result for the fields of the form; nothing if there are no two tags yet. Raises also the errors of `Scope.read`."""
    if not values.get("b"):
        return {}
    chosen = max(len(query.getlist("tag")), len(query.getlist("rev")))
    if chosen > 2:
        raise InvalidInputError(f"Choose two tags or two revisions (got {chosen}).")
    scope = Scope(
        [(values["a"], inputs.revision(values, "rev_a"))],
        [(values["b"], inputs.revision(values, "rev_b"))],
        [values["type"]] if values["type"] else (),
        inputs.window(values) or EVERYTHING,
        Key(values["by"]),
    )
    comparison = scope.read()
    if values["type"]:
        return _of_type(comparison)
    sizes = [(pair.payload_type, size_of(pair.a + pair.b)) for _, _, pair in comparison.pairs()]
    batch = next_batch(query, sizes, comparison.a.states + comparison.b.states)
    if batch.has_changed:
        return {"batch": batch}
    part = replace(comparison, a=comparison.a.only(batch.names), b=comparison.b.only(batch.names))
    types = [item for found in summaries(part) for item in found]
    shown = {
        "batch": batch,
        "types": [(summary, interval_between(*summary.first), interval_between(*summary.last)) for summary in types],
        "total": sum(summary.differences for summary in types),
    }
    return shown | (_affected(comparison) if batch.is_all or values["affected"] else {})


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


def _affected(comparison: Comparison) -> dict[str, object]:
    found = AffectedIntervals()
    for item in spans(comparison):
        found.add(item)
    _, intervals = found.found()
    return {"intervals": intervals[:MAX_SHOWN], "interval_count": len(intervals)}
