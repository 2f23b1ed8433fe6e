"""Forms that attach or delete payload IOVs and payload lists."""

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.models import ListedPayloadIOV, PayloadIOV, PayloadList, PayloadType
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import PayloadIOVNotFoundError, PayloadListNotFoundError, quoted
from cdb_rest.rules.moment import END_OF_TIME, EVERYTHING
from cdb_rest.rules.status import Status
from cdb_rest.writes.clearing import clear_interval
from cdb_rest.writes.payload_iovs import attach_payload_iov, delete_payload_iov
from cdb_rest.writes.payload_lists import attach_payload_list, delete_payload_list
from cdb_web import inputs
from cdb_web.page import form_page, may, newest_names, page, show, store_or_show
from cdb_web.writes import WriteService, check_confirmed, find_list, find_tag, origin_of, preview_and_store

MAX_SHOWN = 200


@page
def detached(request: HttpRequest) -> HttpResponse:
    """The payload lists and IOVs that are in no tag, maybe only those that left the tag `tag`, or lists of the type `type`."""
    tag, payload_type = inputs.text(request.GET, "tag"), inputs.text(request.GET, "type")
    lists = PayloadList.objects.filter(global_tag=None).select_related("payload_type").order_by("-updated", "-id")
    iovs = PayloadIOV.objects.filter(payload_list=None).order_by("updated", "id")
    if tag:
        lists, iovs = lists.filter(left_tag=tag), iovs.filter(left_tag=tag)
    if payload_type:
        lists = lists.filter(payload_type__name=payload_type)
    values = {
        "tag": tag,
        "type": payload_type,
        "lists": lists[:MAX_SHOWN],
        "list_count": lists.count(),
        "rows": iovs[:MAX_SHOWN],
        "count": iovs.count(),
        "max_shown": MAX_SHOWN,
        "may_attach": may(request, Role.CONTRIBUTOR),
    }
    return show(request, "detached.html", values)


@form_page
def attach_list(request: HttpRequest, list_name: str) -> HttpResponse:
    """Attach a detached payload list to a tag, after a preview; or delete it, if it is empty."""
    found = PayloadList.objects.filter(name=list_name, global_tag=None).select_related("payload_type").first()
    if found is None:
        raise PayloadListNotFoundError(described=f"{quoted(list_name)} that is in no global tag")
    values = _values(request, found.left_tag) | {
        "list": found,
        "payload_type": found.payload_type.name,
        "may_delete": may(request, Role.MANAGER, None, found.payload_type.name) and not found.iov_count,
    }

    def delete() -> str:
        check_confirmed(request, list_name, "payload list")
        delete_payload_list(name=list_name, origin=origin_of(request))
        return reverse("web:detached")

    if request.POST.get("action") == "delete":
        return store_or_show(request, "attach.html", values, delete)

    def write() -> tuple[str, WriteService]:
        tag = find_tag(request.POST.get("tag", "")).name
        replaced = PayloadList.objects.filter(global_tag__name=tag, payload_type=found.payload_type).first()
        values["replaced"] = replaced
        return tag, partial(attach_payload_list, global_tag=tag, payload_list=list_name)

    return preview_and_store(request, "attach.html", values, write)


@form_page
def attach_iov(request: HttpRequest, iov_id: int) -> HttpResponse:
    """Attach an IOV that is in no payload list to the list of a tag and payload type, after a preview."""
    found = PayloadIOV.objects.filter(id=iov_id, payload_list=None).first()
    if found is None:
        raise PayloadIOVNotFoundError(described=f"{iov_id} that is in no payload list")
    values = _values(request, found.left_tag) | {
        "iov": found,
        "type": request.POST.get("type", "") if request.method == "POST" else _former_type(found),
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
    }

    def write() -> tuple[str, WriteService]:
        tag, payload_type = find_tag(request.POST.get("tag", "")).name, request.POST.get("type", "")
        return tag, partial(attach_payload_iov, payload_list=find_list(tag, payload_type).name, iov_id=iov_id)

    return preview_and_store(request, "attach.html", values, write)


def _former_type(iov: PayloadIOV) -> str:
    """The payload type of the list that the IOV was in; empty if it is not known."""
    former = uses(Payload(iov.payload_url, None, None), with_removed=True) if iov.left_tag else iter(())
    return next((use["payload_type"] for use in former if use["global_tag"] == iov.left_tag), "")


def _values(request: HttpRequest, left_tag: str | None) -> dict[str, Any]:
    tag = request.POST.get("tag") or left_tag or ""
    return {"tag": tag, "names": newest_names(), "may_attach": may(request, Role.CONTRIBUTOR, tag or None)}


@form_page
def delete(request: HttpRequest, name: str, payload_type: str) -> HttpResponse:
    """Delete the IOV with exactly the start `since` and the end `until` (open if it is missing); without `since`, the list.

    A payload list with IOVs is cleared instead, so that its history says who removed them and why.
    """
    tag, query = find_tag(name), request.GET
    found = find_list(name, payload_type)
    values = {
        "name": name,
        "payload_type": payload_type,
        "list": found,
        "status": tag.status.name,
        "may_delete": tag.status.name == Status.UNLOCKED and may(request, Role.MANAGER, name, payload_type),
    }
    if "since" not in query:
        service: WriteService = partial(delete_payload_list, name=found.name)
        if found.iov_count:
            service = partial(clear_interval, global_tag=name, payload_type=payload_type, interval=EVERYTHING)
        return preview_and_store(request, "delete.html", values, lambda: (name, service))
    until = inputs.text(query, "until")
    end = inputs.moment("Up to", until) if until else END_OF_TIME
    start = inputs.moment("From", inputs.text(query, "since"))
    rows = ListedPayloadIOV.objects.filter(payload_list=found, comb_iov=start.combined)
    iov = rows.filter(major_iov_end=end.major, minor_iov_end=end.minor).first()
    if iov is None:
        raise PayloadIOVNotFoundError(described=f"from {start} up to {end} in payload list {quoted(found.name)}")
    service = partial(delete_payload_iov, global_tag=name, payload_type=payload_type, start=start, end=end)
    return preview_and_store(
        request, "delete.html", values | {"iov": iov, "start": start, "end": end}, lambda: (name, service)
    )
