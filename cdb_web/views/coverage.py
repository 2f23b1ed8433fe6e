"""The gaps of a global tag."""

from collections.abc import Mapping, Sequence

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.coverage import Selection
from cdb_rest.analysis.coverage import coverage as coverage_of
from cdb_web import inputs
from cdb_web.lanes import extent
from cdb_web.page import or_default, page, show_whole_or_part, waiting
from cdb_web.templatetags.cdb_web import interval_end, moment_text

# Gaps of a payload type on the page.
MAX_SHOWN = 20
# About so many IOVs are checked in a second.
ROWS_PER_SECOND = 200_000


@page
def coverage(request: HttpRequest, name: str) -> HttpResponse:
    """For each payload type the gaps in a window. With `type`, only those of one payload type.

    By default, the window begins at the first start in the tag, and ends at the last end or just after the last start.
    """
    names = [item.strip() for item in inputs.text(request.GET, "required").split(",")]
    required = [item for item in names if item]
    values = {item: inputs.text(request.GET, item) for item in ("since", "until", "rev", "type")}
    fixed = {"name": name, "values": values | {"required": ",".join(required)}}
    found, status = or_default(request.GET, lambda query: _coverage(query, name, required))
    return show_whole_or_part(request, "coverage.html", "coverage_result.html", fixed | found, status=status)


def _coverage(query: Mapping[str, str], name: str, required: Sequence[str]) -> dict[str, object]:
    contents = inputs.contents(query, name)
    window = inputs.window(query) or extent([lists[0] for lists in contents.lists.values()])
    payload_type = inputs.text(query, "type")
    missing = [item for item in required if item not in contents.lists]
    if payload_type:
        contents = inputs.contents(query, name, payload_type)
    shown = waiting(query, [lists[0].rows for lists in contents.lists.values()], ROWS_PER_SECOND)
    found = []
    if window is not None and not shown:
        # Payload types without a list come last.
        selection = Selection([(name, inputs.revision(query))], (), window, missing)
        found = [item for part in coverage_of(contents, selection) for item in part]
    return shown | {
        "window": window,
        "since": window and moment_text(window.start),
        "until": window and moment_text(interval_end(window)),
        "types": [(item, item.gaps[:MAX_SHOWN], len(item.gaps) - MAX_SHOWN) for item in found if item.gaps],
        "complete": [item.payload_type for item in found if not item.gaps],
    }
