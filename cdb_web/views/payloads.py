"""Where a payload is used, and why it is valid at a moment."""

from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.explanation import Explanation, explain
from cdb_rest.analysis.uses import Payload, uses
from cdb_rest.history.contents import find_past
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import Moment
from cdb_web import inputs
from cdb_web.iov_rows import Place, next_starts
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
        # A former use ends where it did then.
        limits = next_starts(
            [Place.of(row | {"list_id": row["payload_list_id"]}, row["ended"] and row["ended"] - 1) for row in shown]
        )
        values |= {"rows": list(zip(shown, limits, strict=True)), "has_more": len(rows) > MAX_SHOWN}
    return show(request, "payloads.html", values)


REASONS = {
    "valid": "This payload is valid at this moment.",
    "ended": "No payload is valid: the IOV with the latest start has ended before this moment.",
    "not_started": "No payload is valid: no IOV of the payload list starts at this moment or before.",
    "no_payload_list": "No payload is valid: the tag has no payload list of this type.",
}


@page
def why(request: HttpRequest, name: str) -> HttpResponse:
    """The IOV of the payload type `type` at the moment `at`, the change that put it there, and what it replaced."""
    query = request.GET
    moment = inputs.moment("Moment", inputs.text(query, "at"))
    payload_type = query.get("type", "")
    if not payload_type:
        raise invalid_field("type", "A payload type is required (type).")
    rev = inputs.text(query, "rev")
    as_of = inputs.revision(query)
    _, [found] = explain(tags=[(name, as_of)], moment=moment, payload_types=[payload_type])
    return show(
        request,
        "why.html",
        {
            "name": name,
            "rev": rev,
            "payload_type": payload_type,
            "moment": moment,
            "found": found,
            "reason": REASONS[found.reason],
            "rows": _rows(
                found, find_past(name, as_of).number if as_of else None, f"At revision {rev}" if rev else "Now"
            ),
            "origin": found.change and (found.change.source or {}).get("clone_of"),
        },
    )


def _rows(found: Explanation, number: int | None, title: str) -> list[tuple[str, dict[str, Any] | None, Moment | None]]:
    """The present row and the one before the change, each with its title and the next start in its payload list then.

    `number` is that of the change that made the state, None for the present.
    """
    rows = [(title, found.row, number)]
    if found.change:
        rows.append(("Before this change", found.replaced, found.change.number - 1))
    return [(text, row, next_starts([Place.of(row, then)])[0] if row else None) for text, row, then in rows]
