"""The page of a payload list."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from cdb_rest.exports.export import Selection, find_source
from cdb_web import inputs
from cdb_web.iov_rows import read_rows
from cdb_web.lanes import EVERYTHING
from cdb_web.page import or_default, page, show
from cdb_web.sharing import bases_of, read_lists
from cdb_web.templatetags.cdb_web import moment_text
from cdb_web.views.timeline import timeline_values

PAGE_SIZE = 100


@page
def payload_list(request: HttpRequest, name: str, payload_type: str) -> HttpResponse:
    """The IOVs of a payload list as a lane, and as a table from the moment `since` on, page by page."""
    found, status = or_default(request.GET, lambda query: _list(query, name, payload_type))
    fixed = {"name": name, "payload_type": payload_type}
    fixed |= {"from": inputs.text(request.GET, "since"), "up_to": inputs.text(request.GET, "until")}
    return show(request, "payload_list.html", fixed | found, status=status)


def _list(query: Mapping[str, str], name: str, payload_type: str) -> dict[str, object]:
    found = inputs.contents(query, name, payload_type)
    window = inputs.window(query) or EVERYTHING
    source = find_source(Selection(name, (payload_type,), window, inputs.revision(query)))
    rows = read_rows(source, window, PAGE_SIZE)
    bases = bases_of(read_lists(name, inputs.revision(query)))
    return {
        "rows": rows,
        "shared_with": [base for base in bases if payload_type in base.payload_types],
        "following": rows.following and moment_text(rows.following),
        "rev": inputs.text(query, "rev"),
    } | timeline_values(query, found, [payload_type])
