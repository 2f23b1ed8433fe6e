"""The form that inserts payloads into a global tag, with a preview."""

import csv
import io
from collections.abc import Callable
from itertools import islice
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from rest_framework.exceptions import ParseError

from cdb_rest.api.base.json import limit_of_rows, parse_limited
from cdb_rest.api.base.views import read_rows
from cdb_rest.api.insertions import InsertInput
from cdb_rest.api.plans import insertion_document
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.models import PayloadType
from cdb_rest.parsing.parameters import parse_number
from cdb_rest.rules.errors import CdbError, InvalidInputError, TagChangedError, TooManyRowsError
from cdb_rest.writes.insertion import Insertion, insert_payloads
from cdb_web import inputs
from cdb_web.page import form_page, problem_of, show
from cdb_web.plan_drawing import draw_plan
from cdb_web.writes import as_previewed, dry_run_origin, find_tag, newest_revision, origin_of

FIELDS = ("payload_type", "payload_url", "checksum", "size", "since", "until")
# The required columns of a CSV file.
COLUMNS = ("payload_type", "payload_url", "major_iov", "minor_iov")
# Rows of a preview.
MAX_SHOWN = 100


@form_page
def insert(request: HttpRequest, name: str) -> HttpResponse:
    """A form for one payload, and one for a file with many. The first POST shows what would change; the second one stores it."""
    values: dict[str, Any] = {
        "name": name,
        "tag": find_tag(name),
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
        "max_shown": MAX_SHOWN,
        "values": {field: request.POST.get(field, "").strip() for field in (*FIELDS, "comment")},
        "is_one_row": "payload_type" in request.POST,
        "is_new": "new" in request.GET,
    }
    if request.method != "POST":
        return show(request, "insert.html", values)
    try:
        if "rows" not in request.POST:
            given = [_row(values["values"])] if values["is_one_row"] else _read_file(request)
            return show(request, "insert.html", values | _preview(request, name, given))
        given = _parsed(request.POST["rows"])
        rows = _validated(given, name)
        try:
            return _store(request, name, rows)
        except (InvalidInputError, TagChangedError) as error:
            # With the preview, also if the tag has changed.
            problem, status = problem_of(error)
            return show(request, "insert.html", values | _preview(request, name, given) | problem, status=status)
    except CdbError as error:
        problem, status = problem_of(error)
        return show(request, "insert.html", values | problem, status=status)


def _store(request: HttpRequest, name: str, rows: list[dict[str, Any]]) -> HttpResponse:
    origin = origin_of(request)
    found = as_previewed(request, name, lambda: insert_payloads(rows=rows, origin=origin))
    return HttpResponseRedirect(reverse("web:change", args=[name, found.revisions[name]]) + "?new", status=303)


def _preview(request: HttpRequest, name: str, given: list[Any]) -> dict[str, Any]:
    # The revision is read first: if the tag changes now, the second POST is refused.
    planned = newest_revision(name)
    found = insert_payloads(rows=_validated(given, name), dry_run=True, origin=dry_run_origin(request))
    plan = insertion_document(found, dry_run=True)
    rows = orjson.dumps(given)
    # The second POST has the rows, and some fields.
    if len(rows) + 10_000 > settings.CDB_MAX_BODY_BYTES:
        raise InvalidInputError(
            f"The rows take {len(rows):,} bytes; at most {settings.CDB_MAX_BODY_BYTES - 10_000:,} are accepted at once. "
            "Split the file."
        )
    return {
        "plan": plan["rows"][:MAX_SHOWN],
        "detail": plan["detail"],
        "count": len(given),
        "planned": planned,
        "rows": rows.decode(),
    } | _drawing(name, found)


def _drawing(name: str, found: Insertion) -> dict[str, Any]:
    with snapshot():
        return draw_plan(name, found.placements)


def _validated(rows: list[Any], name: str) -> list[dict[str, Any]]:
    if not rows:
        raise InvalidInputError("The file has no rows.")
    with_tag = [row | {"global_tag": name} if isinstance(row, dict) else row for row in rows]
    return read_rows(with_tag, InsertInput, strict=True)


def _row(values: dict[str, str]) -> dict[str, Any]:
    """The row that the fields have. Raises `InvalidInputError` with all faults that are found here."""
    faults: list[str] = []

    def checked(parse: Callable[[], Any]) -> Any:
        try:
            return parse()
        except InvalidInputError as error:
            faults.append(str(error))
            return None

    for field, label in (("payload_type", "Payload type"), ("payload_url", "Payload URL")):
        if not values[field]:
            faults.append(f"{label} is required.")
    until = values["until"].lower() or "next"
    found = {
        "payload_type": values["payload_type"],
        "payload_url": values["payload_url"],
        "checksum": values["checksum"],
        "size": checked(lambda: parse_number("Bytes", values["size"] or "0")),
        "since": checked(lambda: list(inputs.moment("From", values["since"]))),
        "until": until if until in ("open", "next") else checked(lambda: list(inputs.moment("Up to", until))),
    }
    if faults:
        raise InvalidInputError(" ".join(faults))
    return found


def _read_file(request: HttpRequest) -> list[Any]:
    """The rows of the file, in the form of the API. Raises `InvalidInputError`, or `TooManyRowsError` for CSV."""
    file = request.FILES.get("file")
    if file is None:
        raise InvalidInputError("Choose a file.")
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError("The file must be text in UTF-8.") from error
    if text.lstrip().startswith("["):
        return _parsed(text)
    lines = csv.DictReader(io.StringIO(text))
    try:
        missing = [column for column in COLUMNS if column not in (lines.fieldnames or ())]
        if missing:
            raise InvalidInputError(
                f"The file is neither a JSON array nor CSV with the columns {', '.join(COLUMNS)} "
                f"(missing: {', '.join(missing)})."
            )
        rows = [_from_csv(row) for row in islice(lines, settings.CDB_MAX_BULK_ROWS + 1)]
    except csv.Error as error:
        raise InvalidInputError(f"The file is not valid CSV: {error}.") from error
    if len(rows) > settings.CDB_MAX_BULK_ROWS:
        raise TooManyRowsError(f"The file has more than {settings.CDB_MAX_BULK_ROWS:,} rows; split it.")
    return rows


def _parsed(text: str) -> list[Any]:
    try:
        rows = parse_limited(text.encode(errors="surrogatepass"), limit_of_rows())
    except ParseError as error:
        raise InvalidInputError(str(error.detail).replace("The body", "The file")) from error
    if not isinstance(rows, list):
        raise InvalidInputError("The rows must be a JSON array.")
    return rows


def _from_csv(row: dict[str | None, Any]) -> dict[str, Any]:
    """A row of a file in the format of an export, whose required columns are there. The API checks the values."""
    end = row.get("major_iov_end"), row.get("minor_iov_end")
    found = {
        "payload_type": row["payload_type"],
        "payload_url": row["payload_url"],
        "checksum": row.get("checksum") or "",
        "since": [row["major_iov"], row["minor_iov"]],
        "until": list(end) if any(end) else "next",
    }
    return found | {name: row[name] for name in ("size", "revision") if row.get(name)}
