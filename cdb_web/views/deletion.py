"""The form that deletes a payload IOV of a global tag, or a payload list: first its IOVs, and then the empty list."""

from functools import partial

from django.http import HttpRequest, HttpResponse

from cdb_rest.models import ListedPayloadIOV, PayloadList
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import PayloadIOVNotFoundError, PayloadListNotFoundError, quoted
from cdb_rest.rules.moment import END_OF_TIME
from cdb_rest.rules.status import Status
from cdb_rest.writes.clearing import clear_interval
from cdb_rest.writes.payload_iovs import delete_payload_iov
from cdb_rest.writes.payload_lists import delete_payload_list
from cdb_web import inputs
from cdb_web.lanes import EVERYTHING
from cdb_web.page import form_page
from cdb_web.permissions import may
from cdb_web.previews import WriteService, preview_and_store
from cdb_web.writes import find_tag


@form_page
def delete(request: HttpRequest, name: str, payload_type: str) -> HttpResponse:
    """Delete the IOV with exactly the start `since` and the end `until` (open if it is missing); without `since`, the list.

    A payload list with IOVs is cleared instead, so that its history says who removed them and why.
    """
    tag, query = find_tag(name), request.GET
    found = PayloadList.objects.filter(global_tag=tag, payload_type__name=payload_type).first()
    if found is None:
        raise PayloadListNotFoundError(described=f"of type {quoted(payload_type)} in global tag {quoted(name)}")
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
