"""Where a payload is used."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.rules.moment import Moment
from cdb_web import inputs
from cdb_web.ends import Place, next_starts
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
