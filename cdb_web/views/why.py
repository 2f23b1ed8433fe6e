"""The page that says why a payload is valid at a moment."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.explanation import Explanation, explain
from cdb_rest.history.contents import find_past
from cdb_rest.rules.errors import invalid_field
from cdb_rest.rules.moment import Moment
from cdb_web import inputs
from cdb_web.ends import Place, next_starts
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
    limits = iter(
        next_starts(
            [
                Place(row["list_id"], then, Moment(row["major_iov"], row["minor_iov"]))
                for _, row, then in rows
                if row is not None
            ]
        )
    )
    return [(text, row, next(limits) if row else None) for text, row, _ in rows]
