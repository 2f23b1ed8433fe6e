"""Where a payload is used, and the payload IOVs that are in no payload list."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.models import PayloadIOV
from cdb_rest.rules.errors import CdbError, invalid_field
from cdb_rest.rules.moment import Moment
from cdb_rest.writes.payload_iovs import delete_detached_iovs
from cdb_web import inputs
from cdb_web.ends import Place, next_starts
from cdb_web.page import form_page, page, problem_of, show
from cdb_web.writes import origin_of

MAX_SHOWN = 200
KINDS = {"payload_url": "URL", "url_prefix": "Beginning of the URL", "checksum": "Checksum"}


@page
def payloads(request: HttpRequest) -> HttpResponse:
    """The uses of payloads with a URL, a beginning of the URL, or a checksum, also in the past if `removed`."""
    query = request.GET
    kind, value = query.get("by", "payload_url"), inputs.text(query, "value")
    with_removed = "removed" in query
    kind = kind if kind in KINDS else "payload_url"
    values: dict[str, object] = {"by": kind, "value": value, "kinds": KINDS, "removed": 1 if with_removed else None}
    values["max_shown"] = MAX_SHOWN
    if value:
        payload = Payload(*(value if item == kind else None for item in KINDS))
        rows = list(islice(uses(payload, with_removed=with_removed), MAX_SHOWN + 1))
        shown = rows[:MAX_SHOWN]
        values |= {"rows": list(zip(shown, _limits(shown), strict=True)), "has_more": len(rows) > MAX_SHOWN}
    return show(request, "payloads.html", values)


def _limits(rows: Sequence[Mapping[str, Any]]) -> list[Moment]:
    """The next starts after the rows in their payload lists, for former uses as they were then."""
    return next_starts(
        [
            Place(row["payload_list_id"], row["ended"] and row["ended"] - 1, Moment(row["major_iov"], row["minor_iov"]))
            for row in rows
        ]
    )


@form_page
def detached(request: HttpRequest) -> HttpResponse:
    """The IOVs that are in no payload list, the oldest first, and a form that deletes those that are old enough."""
    problem, status = {}, 200
    if request.method == "POST":
        days = request.POST.get("days", "").strip()
        try:
            if not days.isdecimal() or len(days) > 5:
                raise invalid_field("days", f'days must be a number from 0 to 99999 (got "{days}").')
            before = timezone.now() - timedelta(days=int(days))
            count = delete_detached_iovs(before=before, origin=origin_of(request))
            problem = {"deleted": count, "is_deleted": True}
        except CdbError as error:
            problem, status = problem_of(error)
    rows = PayloadIOV.objects.filter(payload_list=None).order_by("updated", "id")
    values = {"rows": rows[:MAX_SHOWN], "count": rows.count(), "max_shown": MAX_SHOWN}
    return show(request, "detached.html", values | problem, status=status)
