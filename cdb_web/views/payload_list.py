"""The page of a payload list."""

from itertools import islice

from django.http import HttpRequest, HttpResponse

from cdb_rest.domain.moment import Interval, Moment
from cdb_rest.services.export import Selection, find_source
from cdb_rest.services.validity import ValidRow, valid_rows
from cdb_web import inputs
from cdb_web.lanes import EVERYTHING
from cdb_web.page import page, show
from cdb_web.templatetags.cdb_web import moment_text
from cdb_web.views.timeline import axis_of, timeline_values

PAGE_SIZE = 100


@page
def payload_list(request: HttpRequest, name: str, payload_type: str) -> HttpResponse:
    """The IOVs of a payload list as a lane, and as a table from the moment `since` on, page by page."""
    query = request.GET
    found = inputs.contents(query, name, payload_type)
    window = inputs.window(query) or EVERYTHING
    source = find_source(Selection(name, payload_type, window, inputs.revision(query)))
    rows = list(islice(valid_rows(source, window), PAGE_SIZE + 1))
    following = rows[PAGE_SIZE].part.start if len(rows) > PAGE_SIZE else None
    return show(
        request,
        "payload_list.html",
        {
            "name": name,
            "payload_type": payload_type,
            "leading": Interval(window.start, rows[0].part.start) if rows else None,
            "rows": _with_gaps(rows[:PAGE_SIZE], following or window.end),
            "following": following and moment_text(following),
            "rev": inputs.text(query, "rev"),
            "from": inputs.text(query, "since"),
        }
        | timeline_values(axis_of(query, found), [(payload_type, found.lists[payload_type][0])]),
    )


def _with_gaps(rows: list[ValidRow], end: Moment) -> list[tuple[ValidRow, Interval | None]]:
    """Each row with the gap after it, or None. The rows are followed by something at the moment `end`."""
    ends = [*(row.part.start for row in rows[1:]), end]
    gaps = [Interval(row.part.end, following) for row, following in zip(rows, ends, strict=False)]
    return [(row, None if gap.is_empty else gap) for row, gap in zip(rows, gaps, strict=True)]
