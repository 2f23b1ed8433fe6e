"""The comparison of two global tags, or of two revisions."""

from collections.abc import Mapping
from dataclasses import replace

import orjson
from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.affected import AffectedIntervals
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Comparison, Key, Scope, difference_lines, differences, summaries
from cdb_rest.domain.errors import InvalidInputError
from cdb_web import inputs
from cdb_web.batches import next_batch, size_of
from cdb_web.lanes import EVERYTHING
from cdb_web.page import newest_names, or_default, page, show_whole_or_part

# Differences of one payload type, and affected intervals, on a page.
MAX_SHOWN = 200


@page
def compare(request: HttpRequest) -> HttpResponse:
    """The payload types that differ, with their numbers of differences, in batches; or one type's differences.

    The affected intervals are those of all payload types, so they are shown if there is only one batch, or with `affected`.
    """
    query = request.GET
    # The check boxes of the list of tags and of a history.
    chosen, revisions = query.getlist("tag"), sorted(query.getlist("rev"), key=lambda text: (len(text), text))
    values = {
        name: inputs.text(query, name)
        for name in ("a", "b", "rev_a", "rev_b", "by", "type", "since", "until", "affected")
    }
    for name, one in zip("ab", chosen, strict=False):
        values[name] = values[name] or one
    for name, one in zip(("rev_a", "rev_b"), revisions, strict=False):
        values[name] = values[name] or one
    if not values["b"] and (values["rev_a"] or values["rev_b"]):
        values["b"] = values["a"]
    values["by"] = values["by"] if values["by"] in [*Key] else Key.URL

    def found(given: Mapping[str, str]) -> dict[str, object]:
        if max(len(chosen), len(revisions)) > 2 and given:
            raise InvalidInputError("Choose exactly two to compare.")
        return _compare(given, query) if given.get("b") else {}

    more, status = or_default(values, found)
    fixed = {"values": values, "names": newest_names(), "max_shown": MAX_SHOWN}
    return show_whole_or_part(request, "compare.html", "compare_rows.html", fixed | more, status=status)


def _compare(values: Mapping[str, str], query: Mapping[str, str]) -> dict[str, object]:
    scope = Scope(
        [(values["a"], inputs.revision(values, "rev_a"))],
        [(values["b"], inputs.revision(values, "rev_b"))],
        values["type"] or None,
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
    types = [one for found in summaries(part) for one in found]
    shown = {
        "batch": batch,
        "types": [(one, interval_between(*one.first), interval_between(*one.last)) for one in types],
        "total": sum(one.differences for one in types),
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
    for batch in differences(comparison):
        found.add(batch)
    _, intervals = found.found()
    return {"intervals": intervals[:MAX_SHOWN], "interval_count": len(intervals)}
