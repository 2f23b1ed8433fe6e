"""Forms that create, clone, describe, compile or delete global tags, payload types and statuses."""

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from cdb_rest.access.authentication import principal_of
from cdb_rest.api.descriptions import GlobalTagDescriptionInput, PayloadTypeDescriptionInput
from cdb_rest.api.global_tags import GlobalTagInput, NameInput
from cdb_rest.api.payload_types import PAYLOAD_TYPES, NamedInput
from cdb_rest.compiled import demand
from cdb_rest.compiled.pack import readable_packs
from cdb_rest.compiled.state import read_state
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.history.changes import of_payload_type
from cdb_rest.models import GlobalTag, GlobalTagChange, GlobalTagStatus, PayloadType, PayloadTypeChange, RequestKind
from cdb_rest.parsing.fields import read_value
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.access import All, Origin, Role
from cdb_rest.rules.errors import (
    CdbError,
    GlobalTagNotFoundError,
    InvalidInputError,
    PayloadTypeNotFoundError,
    StatusNotFoundError,
    existing,
)
from cdb_rest.rules.names import NAME_LENGTH
from cdb_rest.rules.status import Status, check_status_change, role_for_status
from cdb_rest.writes.global_tags import (
    change_status,
    clone_global_tag,
    create_global_tag,
    create_status,
    delete_global_tag,
    delete_status,
    describe_global_tag,
)
from cdb_rest.writes.limits import set_limits
from cdb_rest.writes.payload_types import create_payload_type, delete_payload_type, describe_payload_type
from cdb_web import inputs
from cdb_web.page import form_page, is_known, may, page, show, store_or_show
from cdb_web.writes import check_confirmed, find_tag, origin_of, proposing


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
        "proposed_statuses": _next_statuses(request, tag, is_proposed=True) if is_known(request) else [],
    }

    def store() -> str:
        origin = origin_of(request)
        if "propose" in request.POST:
            return _propose(request, tag, origin)
        if request.POST.get("action") == "clone":
            target = read_value({"name": request.POST.get("target", "")}, NameInput)["name"]
            shown = clone_global_tag(source=name, target=target, origin=origin).name
        elif request.POST.get("action") == "limits":
            closed, largest = (request.POST.get(field, "").strip() for field in ("closed_until", "largest_major"))
            shown = set_limits(
                name=name,
                closed_until=inputs.moment("Closed until", closed) if closed else None,
                largest_major=parse_number("Largest major number", largest) if largest else None,
                accepts_requests="accepts_requests" in request.POST,
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


def _propose(request: HttpRequest, tag: GlobalTag, origin: Origin) -> str:
    """Make a request for a clone of the tag, or for another status, and return the address of its page."""
    kind, name, document = RequestKind.STATUS, tag.name, {"status": request.POST.get("status", "")}
    if request.POST.get("action") == "clone":
        name = read_value({"name": request.POST.get("target", "")}, NameInput)["name"]
        kind, document = RequestKind.CLONE, {"clone_of": tag.name}
    return proposing(kind, name, document).store(origin=origin)


def _next_statuses(request: HttpRequest, tag: GlobalTag, *, is_proposed: bool = False) -> list[str]:
    """The names of the statuses that the reader may give the tag now, or may only propose for it."""
    found = []
    names = GlobalTagStatus.objects.exclude(id=tag.status_id).order_by("id").values_list("name", flat=True)
    # The one that cannot be undone is the last.
    for name in sorted(names, key=lambda one: one == Status.FROZEN):
        if may(request, role_for_status(name), tag.name, All.ALL) != is_proposed:
            with suppress(CdbError):
                check_status_change(tag=tag.name, old=tag.status.name, new=name)
                found.append(name)
    return found


@form_page
def new(request: HttpRequest) -> HttpResponse:
    """A form for an unlocked tag, which leads to its page for insertions, and one for a payload type.

    Without a permission for some tag or type, there is a text about who may create one instead of its form.
    """
    values = {
        "may_create_tag": may(request, Role.MANAGER, None, All.ALL),
        "may_create_type": may(request, Role.CONTRIBUTOR),
    }

    def store() -> str:
        # A name is not stripped: the service refuses one with spaces, as in the API.
        fields = {"name": request.POST.get("name", ""), "description": request.POST.get("description", "").strip()}
        origin = origin_of(request)
        if request.POST.get("action") == "type":
            created = create_payload_type(**read_value(fields, NamedInput), origin=origin)
            return reverse("web:type", args=[created.name]) + "?new"
        given = read_value(fields | {"status": Status.UNLOCKED, "author": origin.actor[:NAME_LENGTH]}, GlobalTagInput)
        return reverse("web:insert", args=[create_global_tag(**given, origin=origin).name]) + "?new"

    return store_or_show(request, "new.html", values, store)


@form_page
def compiled(request: HttpRequest, name: str) -> HttpResponse:
    """How many payload lists of a tag this host has compiled, and a form that asks its compiler for the others."""
    state = read_state(name)
    if state is None:
        raise GlobalTagNotFoundError(name)
    missing = len(CompiledTag(state, readable_packs()).missing)
    is_asked = request.method == "POST"
    if is_asked:
        principal_of(request.META).require(Role.MANAGER, name)
        # The compiler takes a tag with missing lists first.
        demand.append({name: (0, max(missing, 1))})
    values = {
        "name": name,
        "total": len(state.ids),
        "missing": missing,
        "compiled": len(state.ids) - missing,
        "is_off": not settings.CDB_COMPILED_BYTES,
        "is_asked": is_asked,
        "may_ask": may(request, Role.MANAGER, name),
    }
    return show(request, "compiled.html", values)


PAGE_SIZE = 100
MAX_CHANGES = 50


@page
def types(request: HttpRequest) -> HttpResponse:
    """The payload types whose name or description has a text, with the numbers of tags that have them, page by page."""
    text = inputs.text(request.GET, "q")
    found = PAYLOAD_TYPES.select({"search": text}, PayloadType.objects.all())
    counted = found.annotate(tags=Count("payload_lists__global_tag")).order_by("name")
    shown = Paginator(counted, PAGE_SIZE).get_page(request.GET.get("page"))
    values = {"q": text, "page": shown, "deleted": request.GET.get("deleted", "")}
    return show(request, "types.html", values | {"may_create": may(request, Role.CONTRIBUTOR)})


@form_page
def payload_type(request: HttpRequest, name: str) -> HttpResponse:
    """A payload type: its description, history and last change, the tags that have it, and forms that describe or delete it."""
    found = existing(PayloadType.objects.filter(name=name).first(), PayloadTypeNotFoundError(name))
    attached = found.payload_lists.filter(global_tag__isnull=False).select_related("global_tag__status")
    values: dict[str, Any] = {
        "payload_type": found,
        "page": Paginator(attached.order_by("global_tag__name"), PAGE_SIZE).get_page(request.GET.get("page")),
        "last_change": of_payload_type(GlobalTagChange.objects.order_by("-number"), name).first(),
        "detached": found.payload_lists.filter(global_tag=None).count(),
        "changes": PayloadTypeChange.objects.filter(payload_type=name).order_by("-id")[:MAX_CHANGES],
        "may_manage": may(request, Role.MANAGER, None, name),
    }

    def store() -> str:
        origin = origin_of(request)
        if request.POST.get("action") == "delete":
            check_confirmed(request, name, "payload type")
            delete_payload_type(name=name, origin=origin)
            return f"{reverse('web:types')}?{urlencode({'deleted': name})}"
        given = {"description": request.POST.get("description", "").strip()}
        describe_payload_type(name=name, **read_value(given, PayloadTypeDescriptionInput), origin=origin)
        return reverse("web:type", args=[name])

    return store_or_show(request, "type.html", values, store)


@form_page
def statuses(request: HttpRequest) -> HttpResponse:
    """The statuses of global tags, and forms that create one, or delete one that no tag has."""
    found = GlobalTagStatus.objects.annotate(tags=Count("global_tags")).order_by("id")
    values = {
        "statuses": found,
        "unused": [one.name for one in found if not one.tags and one.name not in list(Status)],
        "may_manage": may(request, Role.MANAGER, All.ALL, All.ALL),
    }

    def store() -> str:
        origin, name = origin_of(request), request.POST.get("name", "")
        if request.POST.get("action") == "delete":
            check_confirmed(request, name, "status")
            delete_status(name=name, origin=origin)
        else:
            fields = {"name": name, "description": request.POST.get("description", "").strip()}
            create_status(**read_value(fields, NamedInput), origin=origin)
        return reverse("web:statuses")

    return store_or_show(request, "statuses.html", values, store)
