"""The forms that clone or delete a global tag, and change its status."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from cdb_rest.api.global_tags import NameInput
from cdb_rest.models import GlobalTagStatus
from cdb_rest.parsing.fields import read_value
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.errors import (
    CdbError,
    InvalidInputError,
    StatusNotFoundError,
)
from cdb_rest.writes.global_tags import change_status, clone_global_tag, delete_global_tag
from cdb_rest.writes.limits import set_limits
from cdb_web import inputs
from cdb_web.page import form_page, problem_of, show
from cdb_web.writes import check_confirmed, find_tag, origin_of


@form_page
def manage(request: HttpRequest, name: str) -> HttpResponse:
    """Forms for a clone, for the status and the limits of a tag, and for its deletion."""
    tag = find_tag(name)
    values: dict[str, Any] = {
        "name": name,
        "tag": tag,
        "statuses": GlobalTagStatus.objects.order_by("name"),
        "values": request.POST,
    }
    if request.method != "POST":
        return show(request, "manage.html", values)
    try:
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
        elif request.POST.get("action") == "delete":
            check_confirmed(request, name)
            delete_global_tag(name=name, origin=origin)
            shown = name
        else:
            wanted = request.POST.get("status", "")
            if wanted == tag.status.name:
                raise InvalidInputError(f"The global tag already has the status {wanted}.")
            known = [value.name for value in values["statuses"]]
            if wanted not in known:
                raise StatusNotFoundError(wanted, known)
            check_confirmed(request, name)
            shown = change_status(name=name, status=wanted, origin=origin).name
    except CdbError as error:
        problem, status = problem_of(error)
        return show(request, "manage.html", values | problem, status=status)
    return HttpResponseRedirect(reverse("web:history", args=[shown]) + "?new", status=303)
