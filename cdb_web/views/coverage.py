"""The gaps of a global tag."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.coverage import Selection
from cdb_rest.analysis.coverage import coverage as coverage_of
from cdb_web import inputs
from cdb_web.batches import next_batch
from cdb_web.lanes import extent
from cdb_web.page import is_partial, or_default, page, show

# Gaps of a payload type on the page.
MAX_SHOWN = 20


@page
def coverage(request: HttpRequest, name: str) -> HttpResponse:
    """For each payload type the gaps in a window, by default from the first start in the tag to the last end, in batches.

    With `type`, only those of one payload type.
    """
    template = "coverage_rows.html" if is_partial(request) else "coverage.html"
    fixed = {
        "name": name,
        "values": {one: inputs.text(request.GET, one) for one in ("since", "until", "required", "rev", "type")},
    }
    found, status = or_default(request.GET, lambda query: _coverage(query, name))
    return show(request, template, fixed | found, status=status)


def _coverage(query: Mapping[str, str], name: str) -> dict[str, object]:
    names = [one.strip() for one in inputs.text(query, "required").split(",")]
    contents = inputs.contents(query, name, inputs.text(query, "type") or None)
    window = inputs.window(query) or extent([lists[0] for lists in contents.lists.values()])
    batch = next_batch([(one, lists[0].rows) for one, lists in contents.lists.items()], inputs.text(query, "after"))
    found = []
    if window is not None:
        # Required payload types without a list come last.
        missing = [] if batch.after else [one for one in names if one and one not in contents.lists]
        selection = Selection([(name, inputs.revision(query))], None, window, missing)
        found = [one for part in coverage_of(contents.only(batch.names), selection) for one in part]
    return {
        "window": window,
        "batch": batch,
        "types": [(one, one.gaps[:MAX_SHOWN], len(one.gaps) - MAX_SHOWN) for one in found if one.gaps],
        "complete": [one.payload_type for one in found if not one.gaps],
    }
