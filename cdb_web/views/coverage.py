"""The gaps of a global tag."""

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.coverage import Selection
from cdb_rest.analysis.coverage import coverage as coverage_of
from cdb_web import inputs
from cdb_web.lanes import extent
from cdb_web.page import page, show

# Gaps of a payload type on the page.
MAX_SHOWN = 20


@page
def coverage(request: HttpRequest, name: str) -> HttpResponse:
    """For each payload type the gaps in a window, by default from the first start in the tag to the last end."""
    query = request.GET
    names = [one.strip() for one in inputs.text(query, "required").split(",")]
    required = [one for one in names if one]
    contents = inputs.contents(query, name)
    window = inputs.window(query) or extent([lists[0] for lists in contents.lists.values()])
    values = {one: inputs.text(query, one) for one in ("since", "until", "required", "rev")}
    found = []
    if window is not None:
        selection = Selection([(name, inputs.revision(query))], None, window, required)
        found = [one for batch in coverage_of(contents, selection) for one in batch]
    return show(
        request,
        "coverage.html",
        {
            "name": name,
            "values": values,
            "window": window,
            "types": [(one, one.gaps[:MAX_SHOWN], len(one.gaps) - MAX_SHOWN) for one in found if one.gaps],
            "complete": [one.payload_type for one in found if not one.gaps],
        },
    )
