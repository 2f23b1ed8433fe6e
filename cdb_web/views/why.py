"""The page that says why a payload is valid at a moment."""

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.explanation import explain
from cdb_rest.rules.errors import invalid_field
from cdb_web import inputs
from cdb_web.page import page, show

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
    _, [found] = explain(tags=[(name, inputs.revision(query))], moment=moment, payload_types=[payload_type])
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
            "rows": [
                (f"At revision {rev}" if rev else "Now", found.row),
                *([("Before this change", found.replaced)] if found.change else []),
            ],
            "origin": found.change and (found.change.source or {}).get("clone_of"),
        },
    )
