"""The history of a global tag, and its single changes."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse

from cdb_rest.history.changes import read_change
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_rest.rules.errors import ChangeNotFoundError, GlobalTagNotFoundError, RevisionPrunedError, quoted
from cdb_web.page import page, show

PAGE_SIZE = 50
# Rows of each side of a change.
MAX_ROWS = 200


@page
def history(request: HttpRequest, name: str) -> HttpResponse:
    """The changes of a tag, newest first, page by page; two of them can be compared."""
    changes = GlobalTagChange.objects.filter(global_tag=name).order_by("-revision")
    if not changes.exists() and not GlobalTag.objects.filter(name=name).exists():
        raise GlobalTagNotFoundError(name)
    return show(
        request,
        "history.html",
        {
            "name": name,
            "page": Paginator(changes, PAGE_SIZE).get_page(request.GET.get("page")),
            "is_new": "new" in request.GET,
        },
    )


@page
def change(request: HttpRequest, name: str, revision: int) -> HttpResponse:
    """One change: who, when, why, and what it removed and added."""
    found = GlobalTagChange.objects.filter(global_tag=name, revision=revision).first()
    if found is None:
        raise ChangeNotFoundError(described=f"of global tag {quoted(name)} with revision {revision}")
    later = GlobalTagChange.objects.filter(global_tag=name, revision__gt=revision)
    values: dict[str, object] = {
        "name": name,
        "change": found,
        "max_rows": MAX_ROWS,
        "is_newest": not later.exists(),
        "is_new": "new" in request.GET,
    }
    try:
        before, after, groups = read_change(found, MAX_ROWS)
    except RevisionPrunedError as error:
        values["pruned"] = str(error)
    else:
        rows = {side: list(group) for side, group in groups}
        values["sides"] = [
            # A template would take a payload type of the name items for the method.
            (title, found_in, list(found_in.get("payload_lists", {}).items()), rows.get(side, []))
            for title, side, found_in in (("Removed", "before", before), ("Added", "after", after))
        ]
    return show(request, "change.html", values)
