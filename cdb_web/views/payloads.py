"""Where a payload is used."""

from itertools import islice

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.uses import Payload, uses
from cdb_web import inputs
from cdb_web.page import page, show

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
    if value:
        payload = Payload(*(value if item == kind else None for item in KINDS))
        rows = list(islice(uses(payload, with_removed=with_removed), MAX_SHOWN + 1))
        values |= {"rows": rows[:MAX_SHOWN], "has_more": len(rows) > MAX_SHOWN, "max_shown": MAX_SHOWN}
    return show(request, "payloads.html", values)
