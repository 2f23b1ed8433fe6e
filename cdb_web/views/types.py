"""The pages of payload types and of statuses: what they are for, where they are used; descriptions and deletions."""

from collections.abc import Sequence
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, F, Max, OuterRef, Q, Subquery
from django.db.models.functions import Greatest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from cdb_rest.api.descriptions import PayloadTypeDescriptionInput
from cdb_rest.api.payload_types import NamedInput
from cdb_rest.models import (
    GlobalTagChange,
    GlobalTagStatus,
    PayloadList,
    PayloadListMembership,
    PayloadListVersion,
    PayloadType,
    PayloadTypeChange,
)
from cdb_rest.parsing.fields import read_value
from cdb_rest.rules.access import All, Role
from cdb_rest.rules.errors import PayloadTypeNotFoundError
from cdb_rest.rules.status import Status
from cdb_rest.writes.descriptions import describe_payload_type
from cdb_rest.writes.global_tags import create_status, delete_status
from cdb_rest.writes.payload_types import delete_payload_type
from cdb_web import inputs
from cdb_web.page import form_page, may, page, show, store_or_show
from cdb_web.writes import check_confirmed, origin_of

PAGE_SIZE = 100
MAX_CHANGES = 50
# The number of the last change of a payload list: of its rows, or an attachment to its tag.
VERSIONS = PayloadListVersion.objects.filter(payload_list_id=OuterRef("id")).order_by("-number").values("number")[:1]
ATTACHED = PayloadListMembership.objects.filter(
    payload_list_id=OuterRef("id"), tag_id=OuterRef("global_tag_id"), removed_in=None
).values("added_in")[:1]
LAST_CHANGE = Greatest(Subquery(VERSIONS), Subquery(ATTACHED))


@page
def types(request: HttpRequest) -> HttpResponse:
    """The payload types whose name or description has a text, with the numbers of tags that have them, page by page."""
    text = inputs.text(request.GET, "q")
    found = PayloadType.objects.filter(Q(name__icontains=text) | Q(description__icontains=text))
    shown = Paginator(found.order_by("name"), PAGE_SIZE).get_page(request.GET.get("page"))
    lists = PayloadList.objects.filter(global_tag__isnull=False, payload_type__in=[one.id for one in shown])
    counted = lists.annotate(number=LAST_CHANGE).values_list("payload_type").annotate(Count("id"), Max("number"))
    used = {type_id: (count, number) for type_id, count, number in counted}
    changes = _changes([number for _, number in used.values()])
    rows = [(one, count, changes.get(number)) for one in shown for count, number in [used.get(one.id, (0, None))]]
    values = {"q": text, "page": shown, "rows": rows, "deleted": request.GET.get("deleted", "")}
    return show(request, "types.html", values | {"may_create": may(request, Role.CONTRIBUTOR)})


@form_page
def payload_type(request: HttpRequest, name: str) -> HttpResponse:
    """A payload type: its description and history, the tags that have it, and forms that describe or delete it."""
    found = PayloadType.objects.filter(name=name).first()
    if found is None:
        raise PayloadTypeNotFoundError(name)
    lists = found.payload_lists.select_related("global_tag__status").annotate(number=LAST_CHANGE)
    attached = lists.filter(global_tag__isnull=False).order_by(F("number").desc(nulls_last=True), "id")
    shown = Paginator(attached, PAGE_SIZE).get_page(request.GET.get("page"))
    changes = _changes([one.number for one in shown])
    values: dict[str, Any] = {
        "payload_type": found,
        "page": shown,
        "rows": [(one, changes.get(one.number)) for one in shown],
        "detached": lists.filter(global_tag=None).count(),
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


def _changes(numbers: Sequence[int | None]) -> dict[int | None, GlobalTagChange]:
    """The changes of tags with these numbers. One write may have changed several tags; then it is the first of them."""
    found = GlobalTagChange.objects.filter(number__in=[number for number in numbers if number is not None])
    return {change.number: change for change in found.order_by("-id")}


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
