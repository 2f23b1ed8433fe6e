"""The forms that clone, describe or delete a global tag, and change its status or limits."""

from contextlib import suppress
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from cdb_rest.api.descriptions import GlobalTagDescriptionInput
from cdb_rest.api.global_tags import NameInput
from cdb_rest.models import GlobalTag, GlobalTagStatus
from cdb_rest.parsing.fields import read_value
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import All, Role
from cdb_rest.rules.errors import (
    CdbError,
    InvalidInputError,
    StatusNotFoundError,
)
from cdb_rest.rules.status import Status, check_status_change, role_for_status
from cdb_rest.writes.descriptions import describe_global_tag
from cdb_rest.writes.global_tags import change_status, clone_global_tag, delete_global_tag
from cdb_rest.writes.limits import set_limits
from cdb_web import inputs
from cdb_web.page import form_page, store_or_show
from cdb_web.permissions import may
from cdb_web.writes import check_confirmed, find_tag, origin_of


@form_page
def manage(request: HttpRequest, name: str) -> HttpResponse:
    """Forms for a clone, for the texts, the status and the limits of a tag, and for its deletion: those that may succeed."""
    tag = find_tag(name)
    is_manager = may(request, Role.MANAGER, name, All.ALL)
    values: dict[str, Any] = {
        "name": name,
        "tag": tag,
        "may_clone": may(request, Role.MANAGER, None, All.ALL),
        "is_manager": is_manager,
        "statuses": _next_statuses(request, tag),
    }

    def store() -> str:
        origin = origin_of(request)
        if request.POST.get("action") == "clone":
            target = read_value({"name": request.POST.get("target", "")}, NameInput)["name"]
            shown = clone_global_tag(source=name, target=target, origin=origin).name
        elif request.POST.get("action") == "limits":
            closed, largest = (request.POST.get(field, "").strip() for field in ("closed_until", "largest_major"))
            shown = set_limits(
                name=name,
                closed_until=inputs.moment("Closed until", closed) if closed else None,
                largest_major=parse_number("Largest major number", largest) if largest else None,
                origin=origin,
            ).name
        elif request.POST.get("action") == "describe":
            texts = {field: request.POST.get(field, "").strip() for field in ("author", "description")}
            shown = describe_global_tag(name=name, **read_value(texts, GlobalTagDescriptionInput), origin=origin).name
        elif request.POST.get("action") == "delete":
            check_confirmed(request, name)
            delete_global_tag(name=name, origin=origin)
            shown = name
        else:
            wanted = request.POST.get("status", "")
            if wanted == tag.status.name:
                raise InvalidInputError(f"The global tag already has the status {wanted}.")
            known = list(GlobalTagStatus.objects.order_by("name").values_list("name", flat=True))
            if wanted not in known:
                raise StatusNotFoundError(wanted, known)
            check_confirmed(request, name)
            shown = change_status(name=name, status=wanted, origin=origin).name
        return reverse("web:history", args=[shown]) + "?new"

    return store_or_show(request, "manage.html", values, store)


def _next_statuses(request: HttpRequest, tag: GlobalTag) -> list[str]:
    """The names of the statuses that the reader may give the tag now."""
    found = []
    names = GlobalTagStatus.objects.exclude(id=tag.status_id).order_by("id").values_list("name", flat=True)
    # The one that cannot be undone is the last.
    for name in sorted(names, key=lambda one: one == Status.FROZEN):
        if may(request, role_for_status(name), tag.name, All.ALL):
            with suppress(CdbError):
                check_status_change(tag=tag.name, old=tag.status.name, new=name)
                found.append(name)
    return found
