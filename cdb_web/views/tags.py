"""The list of global tags."""

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from cdb_rest.models import GlobalTag, GlobalTagStatus
from cdb_web import inputs
from cdb_web.page import page, show_whole_or_part

COLUMNS = {
    "name": "Name",
    "status": "Status",
    "revision": "Revision",
    "payload_lists_count": "Payload types",
    "payload_iov_count": "IOVs",
    "updated": "Last change",
}
PAGE_SIZE = 50


@page
def tags(request: HttpRequest) -> HttpResponse:
    """The global tags that match a text and a status, sorted by a column, page by page; two of them can be compared."""
    query = request.GET
    text, status, sort = (inputs.text(query, name) for name in ("q", "status", "sort"))
    column = sort.removeprefix("-")
    if column not in COLUMNS:
        sort, column = "-updated", "updated"
    field = "status__name" if column == "status" else column
    found = GlobalTag.objects.select_related("status").order_by("-" * sort.startswith("-") + field, "id")
    if text:
        found = found.filter(Q(name__icontains=text) | Q(author__icontains=text) | Q(description__icontains=text))
    if status:
        found = found.filter(status__name=status)
    values = {
        "q": text,
        "status": status,
        "sort": sort,
        "columns": [(name, title, _next_sort(name, sort)) for name, title in COLUMNS.items()],
        "page": Paginator(found, PAGE_SIZE).get_page(query.get("page")),
        "statuses": GlobalTagStatus.objects.order_by("name").values_list("name", flat=True),
    }
    return show_whole_or_part(request, "tags.html", "tags_table.html", values)


def _next_sort(column: str, sort: str) -> str:
    """What a click on the title of a column sorts by."""
    return f"-{column}" if sort == column else column
