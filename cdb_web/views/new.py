"""The forms that create a global tag or a payload type."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.global_tags import GlobalTagInput
from cdb_rest.api.payload_types import NamedInput
from cdb_rest.models import PayloadType
from cdb_rest.parsing.fields import read_value
from cdb_rest.rules.access import All, Role
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.names import NAME_LENGTH
from cdb_rest.rules.status import Status
from cdb_rest.writes.global_tags import create_global_tag
from cdb_rest.writes.payload_types import create_payload_type
from cdb_web.page import form_page, problem_of, show
from cdb_web.writes import origin_of


@form_page
def new(request: HttpRequest) -> HttpResponse:
    """A form for an unlocked tag, which leads to its page for insertions, and one for a payload type.

    Without a permission for some tag or type, there is a text about who may create one instead of its form.
    """
    principal = principal_of(request.META)
    may = {
        "may_create_tag": principal.permission(Role.MANAGER, None, All.ALL),
        "may_create_type": principal.permission(Role.CONTRIBUTOR),
        "contact": settings.CDB_ACCESS_CONTACT,
    }
    if request.method != "POST":
        # After one was created.
        found = PayloadType.objects.filter(name=request.GET.get("type", "")).first()
        return show(request, "new.html", may | {"payload_type": found})
    what = "type" if request.POST.get("action") == "type" else "tag"
    # A name is not stripped: the service refuses one with spaces, as in the API.
    fields = {"name": request.POST.get("name", ""), "description": request.POST.get("description", "").strip()}
    try:
        origin = origin_of(request)
        if what == "type":
            created = create_payload_type(**read_value(fields, NamedInput), origin=origin)
            return HttpResponseRedirect(f"{reverse('web:new')}?{urlencode({'type': created.name})}", status=303)
        values = read_value(fields | {"status": Status.UNLOCKED, "author": origin.actor[:NAME_LENGTH]}, GlobalTagInput)
        tag = create_global_tag(**values, origin=origin)
    except CdbError as error:
        problem, status = problem_of(error)
        kept = fields | {"comment": request.POST.get("comment", "")}
        return show(request, "new.html", may | {"values": {what: kept}} | problem, status=status)
    return HttpResponseRedirect(reverse("web:insert", args=[tag.name]) + "?new", status=303)
