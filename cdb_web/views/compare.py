"""The comparison of two global tags, or of two revisions."""

import orjson
from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.affected import AffectedIntervals
from cdb_rest.analysis.contents import interval_between
from cdb_rest.analysis.difference import Key, Scope, difference_lines, differences, summaries
from cdb_rest.models import GlobalTag
from cdb_web import inputs
from cdb_web.lanes import EVERYTHING
from cdb_web.page import page, show

# Differences of one payload type, and affected intervals, on a page.
MAX_SHOWN = 200


@page
def compare(request: HttpRequest) -> HttpResponse:
    """The payload types that differ, with their numbers of differences, and the affected intervals; or one type's differences."""
    query = request.GET
    # The check boxes of the list of tags and of a history.
    chosen, revisions = query.getlist("tag"), sorted(query.getlist("rev"), key=lambda text: (len(text), text))
    values = {name: inputs.text(query, name) for name in ("a", "b", "rev_a", "rev_b", "by", "type", "since", "until")}
    for name, one in zip("ab", chosen, strict=False):
        values[name] = values[name] or one
    for name, one in zip(("rev_a", "rev_b"), revisions, strict=False):
        values[name] = values[name] or one
    values["b"] = values["b"] or values["a"]
    values["by"] = values["by"] if values["by"] in [*Key] else Key.URL
    more: dict[str, object] = {"names": GlobalTag.objects.order_by("-updated").values_list("name", flat=True)[:200]}
    if values["a"]:
        more |= _compare(values, bool(values["type"]))
    return show(request, "compare.html", {"values": values, "max_shown": MAX_SHOWN} | more)


def _compare(values: dict[str, str], has_type: bool) -> dict[str, object]:
    scope = Scope(
        [(values["a"], inputs.revision(values, "rev_a"))],
        [(values["b"], inputs.revision(values, "rev_b"))],
        values["type"] or None,
        inputs.window(values) or EVERYTHING,
        Key(values["by"]),
    )
    comparison = scope.read()
    if has_type:
        count, rest = 0, b""
        shown: list[bytes] = []
        for chunk in difference_lines(comparison):
            count += chunk.count(b"\n")
            if len(shown) < MAX_SHOWN:
                *lines, rest = (rest + chunk).split(b"\n")
                shown += lines
        return {"rows": [orjson.loads(line) for line in shown[:MAX_SHOWN]], "count": count}
    types = [one for batch in summaries(comparison) for one in batch]
    found = AffectedIntervals()
    for batch in differences(comparison):
        found.add(batch)
    _, intervals = found.found()
    return {
        "types": [(one, interval_between(*one.first), interval_between(*one.last)) for one in types],
        "total": sum(one.differences for one in types),
        "intervals": intervals[:MAX_SHOWN],
        "interval_count": len(intervals),
    }
