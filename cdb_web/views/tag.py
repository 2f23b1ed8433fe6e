"""The page of a global tag."""

from django.http import HttpRequest, HttpResponse

from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadList
from cdb_web import inputs
from cdb_web.page import page, show
from cdb_web.views.timeline import axis_of, timeline_values


@page
def tag(request: HttpRequest, name: str) -> HttpResponse:
    """A global tag in the present or at a revision: its attributes, its timeline, and its payload lists as a table."""
    found = inputs.contents(request.GET, name)
    as_of = inputs.revision(request.GET)
    changes = GlobalTagChange.objects.filter(global_tag=name).defer("logged_before", "logged_after")
    shown = changes.filter(revision=as_of.revision or 0) if as_of else changes
    names = {
        one.id: one.name for one in PayloadList.objects.filter(id__in=[lists[0].id for lists in found.lists.values()])
    }
    axis = axis_of(request.GET, found)
    return show(
        request,
        "tag.html",
        {
            "name": name,
            "tag": GlobalTag.objects.select_related("status").filter(name=name).first(),
            "rev": inputs.text(request.GET, "rev"),
            "change": shown.order_by("-number").first(),
            "newest": changes.order_by("-number").values_list("revision", flat=True).first(),
            "lists": [(payload_type, lists[0], names.get(lists[0].id)) for payload_type, lists in found.lists.items()],
        }
        | timeline_values(axis, [(payload_type, lists[0]) for payload_type, lists in found.lists.items()]),
    )
