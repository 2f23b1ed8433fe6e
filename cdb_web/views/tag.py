"""The page of a global tag."""

from collections.abc import Mapping

from django.db.models import Max, Min, QuerySet
from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.contents import read_contents
from cdb_rest.models import ChangeAction, GlobalTag, GlobalTagChange
from cdb_web import inputs
from cdb_web.page import or_default, page, show
from cdb_web.sharing import bases_of, read_lists
from cdb_web.views.timeline import timeline_values


@page
def tag(request: HttpRequest, name: str) -> HttpResponse:
    """A global tag in the present or at a revision: its attributes, its timeline, and its payload lists as a table."""
    changes = GlobalTagChange.objects.filter(global_tag=name)
    fixed = {
        "name": name,
        "tag": GlobalTag.objects.filter(name=name).first(),
        "revisions": changes.aggregate(first=Min("revision"), last=Max("revision")),
    }
    found, status = or_default(request.GET, lambda query: _tag(query, name, changes))
    return show(request, "tag.html", fixed | found, status=status)


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
