"""The gaps of a global tag."""

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.coverage import Selection
from cdb_rest.analysis.coverage import coverage as coverage_of
from cdb_web import inputs
from cdb_web.batches import next_batch
from cdb_web.lanes import extent
from cdb_web.page import is_partial, page, show

# Gaps of a payload type on the page.
MAX_SHOWN = 20


@page
def coverage(request: HttpRequest, name: str) -> HttpResponse:
    """For each payload type the gaps in a window, by default from the first start in the tag to the last end, in batches.

    With `type`, only those of one payload type.
    """
    query = request.GET
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
    return show(
        request,
        "coverage_rows.html" if is_partial(request) else "coverage.html",
        {
            "name": name,
            "values": {one: inputs.text(query, one) for one in ("since", "until", "required", "rev", "type")},
            "window": window,
            "batch": batch,
            "types": [(one, one.gaps[:MAX_SHOWN], len(one.gaps) - MAX_SHOWN) for one in found if one.gaps],
            "complete": [one.payload_type for one in found if not one.gaps],
        },
    )
