"""The list of global tags, the page of a tag, and that of a payload list."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.core.paginator import Paginator
from django.db.models import Max, Min, QuerySet
from django.http import HttpRequest, HttpResponse

from cdb_rest import named_sql
from cdb_rest.analysis.contents import ListVersion, read_contents
from cdb_rest.api.global_tags import GLOBAL_TAGS
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.exports.export import Selection, find_source
from cdb_rest.history.contents import find_past
from cdb_rest.models import ChangeAction, ChangeRequest, GlobalTag, GlobalTagChange, GlobalTagStatus, RequestState
from cdb_rest.rules.access import Role
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.moment import AFTER_ALL, EVERYTHING, Moment
from cdb_web import inputs
from cdb_web.iov_rows import read_rows
from cdb_web.page import may, page, show_query
from cdb_web.templatetags.cdb_web import moment_text
from cdb_web.views.timeline import timeline_values

LISTS = named_sql.load("shared_lists")


class TagPayloadList(NamedTuple):
    """A payload list. If it shares rows, the other columns say which global tag had them, and when.

    `first` and `before` are the numbers of the changes between which the tag had the list with these rows; `before` is null if it
    still has it. `revision` is that of the change `first`. They are all null if the history of that tag is not stored.
    """

    payload_type: str
    name: str
    is_shared: bool
    tag_id: int | None
    first: int | None
    before: int | None
    tag: str | None
    revision: int | None
    has_history: bool | None
    tag_exists: bool


class Base(NamedTuple):
    """A state of a global tag, as that of the newest of its lists, and the payload types whose lists share its rows."""

    newest: TagPayloadList
    payload_types: list[str]


def read_lists(name: str, as_of: AsOf | None) -> list[TagPayloadList]:
    """The payload lists of a tag in the present or in the past, by payload type. Raises the errors of `find_past`."""
    if as_of is None:
        tag_id, number = GlobalTag.objects.values_list("id", flat=True).get(name=name), None
    else:
        past = find_past(name, as_of)
        tag_id, number = past.tag_id, past.number
    return [TagPayloadList(*row) for row in fetch_all(LISTS, {"tag_id": tag_id, "number": number})]


def bases_of(lists: Sequence[TagPayloadList]) -> list[Base]:
    """The states of global tags that have the rows that some of the lists share: as few as possible, the newest first."""
    left = sorted((one for one in lists if one.is_shared), key=lambda one: one.first or 0, reverse=True)
    found = []
    while left:
        newest = left[0]
        # A list that came earlier is in the same state of the tag if it was still unchanged when the newest one came.
        same = [
            one for one in left if one.tag_id == newest.tag_id and (not one.before or one.before > (newest.first or 0))
        ]
        found.append(Base(newest, [one.payload_type for one in same]))
        left = [one for one in left if one not in same]
    return found


COLUMNS = {
    "name": "Name",
    "status": "Status",
    "revision": "Revision",
    "payload_lists_count": "Payload types",
    "payload_iov_count": "IOVs",
    "updated": "Last change",
}
TAGS_PER_PAGE = 50


@page
def tags(request: HttpRequest) -> HttpResponse:
    """The global tags that match a text and a status, sorted by a column, page by page; two of them can be compared."""
    query = request.GET
    text, status, sort = (inputs.text(query, name) for name in ("q", "status", "sort"))
    column = sort.removeprefix("-")
    if column not in COLUMNS:
        sort, column = "-updated", "updated"
    field = "status__name" if column == "status" else column
    rows = GlobalTag.objects.select_related("status").order_by("-" * sort.startswith("-") + field, "id")
    found = GLOBAL_TAGS.select({"search": text, "status": status}, rows)
    values = {
        "q": text,
        "status": status,
        "sort": sort,
        "columns": [(name, title, f"-{name}" if sort == name else name) for name, title in COLUMNS.items()],
        "page": Paginator(found, TAGS_PER_PAGE).get_page(query.get("page")),
        "statuses": GlobalTagStatus.objects.order_by("name").values_list("name", flat=True),
    }
    return show_query(request, "tags.html", values, lambda _: {})


@page
def tag(request: HttpRequest, name: str) -> HttpResponse:
    """A global tag in the present or at a revision: its attributes, its timeline, and its payload lists as a table."""
    changes = GlobalTagChange.objects.filter(global_tag=name)
    fixed = {
        "name": name,
        "tag": GlobalTag.objects.filter(name=name).first(),
        "open_requests": ChangeRequest.objects.filter(global_tag=name, state=RequestState.OPEN).count(),
        "revisions": changes.aggregate(first=Min("revision"), last=Max("revision")),
    }
    return show_query(request, "tag.html", fixed, lambda query: _tag(query, name, changes))


def _tag(query: Mapping[str, str], name: str, changes: QuerySet[GlobalTagChange]) -> dict[str, object]:
    found = inputs.contents(query, name)
    as_of = inputs.revision(query)
    shown = changes.filter(revision=as_of.revision or 0) if as_of else changes
    change = shown.order_by("-number").first()
    clone = change and changes.filter(action=ChangeAction.CLONE, tag_id=change.tag_id).first()
    lists = {payload_type: lists[0] for payload_type, lists in found.lists.items()}
    stored = {one.payload_type: one for one in read_lists(name, as_of)}
    drawn = list(lists)
    if since := inputs.revision(query, "changed"):
        before = {payload_type: one[0][:2] for payload_type, one in read_contents([(name, since)]).lists.items()}
        drawn = [payload_type for payload_type, one in lists.items() if one[:2] != before.get(payload_type)]
    return {
        "rev": inputs.text(query, "rev"),
        "status": found.states[0].status,
        "change": change,
        "base": clone and (clone.source or {}).get("clone_of"),
        "lists": [(payload_type, one, stored[payload_type]) for payload_type, one in lists.items()],
        "shared_with": bases_of(list(stored.values())),
    } | timeline_values(query, found, drawn)


IOVS_PER_PAGE = 100
PAGE_START = named_sql.load("page_start")


@page
def payload_list(request: HttpRequest, name: str, payload_type: str) -> HttpResponse:
    """The IOVs of a payload list as a lane, and as a table from the moment `since` on, page by page.

    `go` asks for the page before that moment (`previous`), or for the last one (`last`).
    """
    fixed = {
        "name": name,
        "payload_type": payload_type,
        "may_manage": may(request, Role.MANAGER, name, payload_type),
        "from": inputs.text(request.GET, "since"),
        "up_to": inputs.text(request.GET, "until"),
    }
    return show_query(request, "payload_list.html", fixed, lambda query: _list(query, name, payload_type))


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
    rows = read_rows(source, window, IOVS_PER_PAGE)
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
    place = {"list": rows_list.id, "version": rows_list.rows_version, "before": before.combined}
    [(start,)] = fetch_all(PAGE_START, place | {"size": IOVS_PER_PAGE})
    return EVERYTHING.start if start is None else Moment.from_combined(start)
