"""The page of a payload list."""

from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse

from cdb_rest import named_sql
from cdb_rest.analysis.contents import ListVersion
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.export import Selection, find_source
from cdb_rest.models import GlobalTag
from cdb_rest.rules.access import Role
from cdb_rest.rules.moment import AFTER_ALL, Moment
from cdb_rest.rules.status import Status
from cdb_web import inputs
from cdb_web.iov_rows import read_rows
from cdb_web.lanes import EVERYTHING
from cdb_web.page import or_default, page, show
from cdb_web.permissions import may
from cdb_web.sharing import bases_of, read_lists
from cdb_web.templatetags.cdb_web import moment_text
from cdb_web.views.timeline import timeline_values

PAGE_SIZE = 100
PAGE_START = named_sql.load("page_start")


@page
def payload_list(request: HttpRequest, name: str, payload_type: str) -> HttpResponse:
    """The IOVs of a payload list as a lane, and as a table from the moment `since` on, page by page.

    `go` asks for the page before that moment (`previous`), or for the last one (`last`).
    """
    found, status = or_default(request.GET, lambda query: _list(query, name, payload_type))
    fixed: dict[str, object] = {"name": name, "payload_type": payload_type}
    fixed |= {"may_change": _may_change(request, name, payload_type)}
    fixed |= {"from": inputs.text(request.GET, "since"), "up_to": inputs.text(request.GET, "until")}
    return show(request, "payload_list.html", fixed | found, status=status)


def _may_change(request: HttpRequest, name: str, payload_type: str) -> bool:
    """Whether the reader may delete IOVs now."""
    is_unlocked = GlobalTag.objects.filter(name=name, status__name=Status.UNLOCKED).exists()
    return is_unlocked and "rev" not in request.GET and may(request, Role.MANAGER, name, payload_type)


def _list(query: Mapping[str, str], name: str, payload_type: str) -> dict[str, object]:
    found = inputs.contents(query, name, payload_type)
    [rows_list] = found.lists[payload_type]
    moved: dict[str, str] = {}
    go, given = query.get("go"), inputs.window(query) or EVERYTHING
    if go in ("previous", "last"):
        start = _page_start(rows_list, given.start if go == "previous" else AFTER_ALL)
        query = {name: text for name, text in query.items() if name != "go"} | {"since": moment_text(start)}
        moved = {"from": moment_text(start)}
    window = inputs.window(query) or EVERYTHING
    source = find_source(Selection(name, (payload_type,), window, inputs.revision(query)))
    rows = read_rows(source, window, PAGE_SIZE)
    bases = bases_of(read_lists(name, inputs.revision(query)))
    return (
        {
            "rows": rows,
            "status": found.states[0].status,
            "shared_with": [base for base in bases if payload_type in base.payload_types],
            "has_previous": window.start > EVERYTHING.start,
            "following": rows.following and moment_text(rows.following),
            "rev": inputs.text(query, "rev"),
        }
        | moved
        | timeline_values(query, found, [payload_type])
    )


def _page_start(rows_list: ListVersion, before: Moment) -> Moment:
    """The start of the last page of rows that start before a moment."""
    parameters = {
        "list": rows_list.id,
        "version": rows_list.rows_version,
        "before": before.combined,
        "size": PAGE_SIZE,
    }
    [(start,)] = fetch_all(PAGE_START, parameters)
    return EVERYTHING.start if start is None else Moment.from_combined(start)
