"""The form that inserts payloads into a global tag, with a preview."""

import csv
import io
from itertools import islice
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from rest_framework.exceptions import ParseError

from cdb_rest.api.inputs import InsertInput, read_rows
from cdb_rest.api.plans import insertion_document
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.domain.errors import CdbError, GlobalTagNotFoundError, InvalidInputError
from cdb_rest.models import GlobalTag, PayloadType
from cdb_rest.parsing.json_body import limit_of_rows, parse_limited
from cdb_rest.parsing.parameters import parse_moment_text, parse_number
from cdb_rest.services.insertion import Insertion, insert_payloads
from cdb_web.page import form_page, show
from cdb_web.plan_drawing import draw_plan
from cdb_web.writes import as_previewed, newest_revision, origin_of, problem_of

FIELDS = ("payload_type", "payload_url", "checksum", "size", "since", "until", "comment")
# Rows of a preview.
MAX_SHOWN = 100


@form_page
def insert(request: HttpRequest, name: str) -> HttpResponse:
    """A form for one payload or for a file with many. The first POST shows what would change; the second one stores it."""
    if not GlobalTag.objects.filter(name=name).exists():
        raise GlobalTagNotFoundError(name)
    values: dict[str, Any] = {
        "name": name,
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
        "max_shown": MAX_SHOWN,
        "values": {field: request.POST.get(field, "") for field in FIELDS},
    }
    if request.method != "POST":
        return show(request, "insert.html", values)
    try:
        if "rows" in request.POST:
            return _store(request, name)
        return show(request, "insert.html", values | _preview(request, name))
    except CdbError as error:
        problem, status = problem_of(error)
        return show(request, "insert.html", values | problem, status=status)


def _store(request: HttpRequest, name: str) -> HttpResponse:
    rows = _validated(_parsed(request.POST["rows"]), name)
    origin = origin_of(request)
    found = as_previewed(request, name, lambda: insert_payloads(rows=rows, origin=origin))
    return HttpResponseRedirect(reverse("web:change", args=[name, found.revisions[name]]), status=303)


def _preview(request: HttpRequest, name: str) -> dict[str, Any]:
    given = _rows(request)
    # The revision is read first: if the tag changes now, the second POST is refused.
    planned = newest_revision(name)
    found = insert_payloads(rows=_validated(given, name), dry_run=True, origin=origin_of(request))
    plan = insertion_document(found, dry_run=True)
    return {"plan": plan["rows"][:MAX_SHOWN], "detail": plan["detail"], "count": len(given), "planned": planned,
            "rows": orjson.dumps(given).decode()} | _drawing(name, found)  # fmt: skip


def _drawing(name: str, found: Insertion) -> dict[str, Any]:
    with snapshot():
        return draw_plan(name, found.placements)


def _validated(rows: list[Any], name: str) -> list[dict[str, Any]]:
    if not rows:
        raise InvalidInputError("There are no rows.")
    with_tag = [row | {"global_tag": name} if isinstance(row, dict) else row for row in rows]
    found = read_rows(with_tag, InsertInput, strict=True)
    for row in found:
        row.pop("dry_run")
    return found


def _rows(request: HttpRequest) -> list[Any]:
    """The rows in the form of the API, from the file, or else from the fields."""
    file = request.FILES.get("file")
    if file is None:
        row = {field: request.POST.get(field, "").strip() for field in FIELDS if field != "comment"}
        until = row["until"] or "next"
        return [
            {
                "payload_type": row["payload_type"],
                "payload_url": row["payload_url"],
                "checksum": row["checksum"],
                "size": parse_number("size", row["size"] or "0"),
                "since": list(parse_moment_text("since", row["since"])),
                "until": until if until in ("open", "next") else list(parse_moment_text("until", until)),
            }
        ]
    try:
        text = file.read().decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError("The file is not a text in UTF-8.") from error
    if text.lstrip().startswith("["):
        return _parsed(text)
    # One more row than is accepted, so that there is an error.
    lines = islice(csv.DictReader(io.StringIO(text)), settings.CDB_MAX_BULK_ROWS + 1)
    try:
        return [_from_csv(row) for row in lines]
    except csv.Error as error:
        raise InvalidInputError(f"The file is not valid CSV: {error}.") from error


def _parsed(text: str) -> list[Any]:
    try:
        rows = parse_limited(text.encode(errors="surrogatepass"), limit_of_rows())
    except ParseError as error:
        raise InvalidInputError(str(error.detail)) from error
    if not isinstance(rows, list):
        raise InvalidInputError("The rows must be a JSON array.")
    return rows


def _from_csv(row: dict[str | None, Any]) -> dict[str, Any]:
    """A row of a file in the format of an export."""
    columns = ("payload_type", "payload_url", "checksum", "major_iov", "minor_iov")
    missing = [column for column in columns if not row.get(column) and column != "checksum"]
    if missing:
        raise InvalidInputError(f"Each row of the CSV file needs {', '.join(columns)}; {missing[0]} is missing.")
    end = row.get("major_iov_end"), row.get("minor_iov_end")
    found = {
        "payload_type": row["payload_type"],
        "payload_url": row["payload_url"],
        "checksum": row.get("checksum") or "",
        "since": [row["major_iov"], row["minor_iov"]],
        "until": list(end) if all(end) else "next",
    }
    return found | {name: row[name] for name in ("size", "revision") if row.get(name)}
