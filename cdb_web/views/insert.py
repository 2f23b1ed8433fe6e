"""The form that inserts payloads into a global tag, or clears an interval, with a preview."""

import io
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, cast

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from cdb_rest.api.plans import cuts_document, insertion_document
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.models import ChangeAction, PayloadType
from cdb_rest.parsing.iov_files import CutFileError, Options, read_iov_rows
from cdb_rest.parsing.parameters import parse_end_text, parse_number
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import CdbError, InvalidInputError, TagChangedError
from cdb_rest.rules.iov_rows import IOVRow
from cdb_rest.rules.moment import Interval, Mode
from cdb_rest.writes.clearing import Clearing, clear_interval
from cdb_rest.writes.imports import ImportOptions, ImportResult, import_payload_iovs
from cdb_rest.writes.insertion import Insertion
from cdb_rest.writes.previews import preview
from cdb_web import inputs
from cdb_web.page import form_page, problem_of, show
from cdb_web.plan_drawing import draw_plan
from cdb_web.writes import as_previewed, dry_run_origin, find_tag, newest_revision, origin_of

FIELDS = ("payload_type", "payload_url", "checksum", "size", "since", "until")
# Rows of a preview.
MAX_SHOWN = 100


@form_page
def insert(request: HttpRequest, name: str) -> HttpResponse:
    """Forms for one payload, for a file with many, and for an interval without payload.

    The first POST shows what would change; the second one stores it.
    """
    values: dict[str, Any] = {
        "name": name,
        "tag": find_tag(name),
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
        "max_shown": MAX_SHOWN,
        "values": {field: request.POST.get(field, "") for field in (*FIELDS, "comment", "open_hides_later")},
        "is_one_row": "payload_type" in request.POST and "clear" not in request.POST,
        "is_clearing": "clear" in request.POST,
        "is_new": "new" in request.GET,
    }
    if request.method != "POST":
        return show(request, "insert.html", values)
    try:
        # Before the file is read.
        dry_run_origin(request).principal.require(Role.CONTRIBUTOR, name)
        if "clear" in request.POST:
            return _clear(request, name, values)
        if "rows" not in request.POST:
            given = [_row(values["values"])] if values["is_one_row"] else _read_file(request)
            return show(request, "insert.html", values | _preview(request, name, given, is_one=values["is_one_row"]))
        given, is_one = list(_parsed(request.POST["rows"].encode(errors="replace"))), "is_one_row" in request.POST
        try:
            return _store(request, name, given, is_one=is_one)
        except (InvalidInputError, TagChangedError) as error:
            # With the preview, also if the tag has changed.
            problem, status = problem_of(error)
            shown = _preview(request, name, given, is_one=is_one)
            return show(request, "insert.html", values | shown | problem, status=status)
    except CdbError as error:
        problem, status = problem_of(error)
        may_be_cut = {"may_be_cut": isinstance(error, CutFileError)}
        return show(request, "insert.html", values | problem | may_be_cut, status=status)


def _store(request: HttpRequest, name: str, given: list[IOVRow], *, is_one: bool) -> HttpResponse:
    found = as_previewed(request, name, lambda: _import(request, name, given, is_one=is_one, dry_run=False))
    return _to_change(name, found.revision)


def _to_change(name: str, revision: int | None) -> HttpResponse:
    """The redirect to the change that was made, or to the history if nothing changed."""
    if revision is None:
        return HttpResponseRedirect(reverse("web:history", args=[name]), status=303)
    return HttpResponseRedirect(reverse("web:change", args=[name, revision]) + "?new", status=303)


def _import(request: HttpRequest, name: str, given: list[IOVRow], *, is_one: bool, dry_run: bool) -> ImportResult:
    """One row is placed by the interval rule, those of a file as a set."""
    options = ImportOptions(in_order=is_one, hides_later=request.POST.get("open_hides_later") == "1")
    action = ChangeAction.INSERT if is_one else ChangeAction.BULK
    origin = dry_run_origin(request) if dry_run else origin_of(request)

    def service() -> ImportResult:
        return import_payload_iovs(
            read=lambda: given, global_tag=name, options=options, action=action, confirmed=True, origin=origin
        )

    return preview(name, service, lambda result, _: result) if dry_run else service()


def _preview(request: HttpRequest, name: str, given: list[IOVRow], *, is_one: bool) -> dict[str, Any]:
    if not given:
        raise InvalidInputError("The file has no rows.")
    # The revision is read first: if the tag changes now, the second POST is refused.
    planned = newest_revision(name)
    found = _import(request, name, given, is_one=is_one, dry_run=True)
    plan = insertion_document(Insertion(found.placements, found.new_lists, {}), dry_run=True)
    rows = orjson.dumps([_document(row) for row in given])
    # The second POST has the rows, and some fields.
    if len(rows) + 10_000 > settings.CDB_MAX_BODY_BYTES:
        raise InvalidInputError(
            f"The rows take {len(rows):,} bytes; at most {settings.CDB_MAX_BODY_BYTES - 10_000:,} are accepted at once. "
            "Split the file."
        )
    placed = [placement for placement in found.placements if placement.holder is None]
    with snapshot():
        drawing = draw_plan(name, placed) if placed else {}
    return {
        "plan": plan["rows"][:MAX_SHOWN],
        "detail": plan["detail"],
        "count": len(given),
        "changes": len(placed),
        "planned": planned,
        "rows": rows.decode(),
        "is_one_row": is_one,
    } | drawing


def _clear(request: HttpRequest, name: str, values: dict[str, Any]) -> HttpResponse:
    """The preview of a clearing, or with the field `planned` the clearing."""
    fields = values["values"]
    since, until = inputs.moment("From", fields["since"]), fields["until"].strip().lower()
    interval = Interval.from_wire(since, parse_end_text("Up to", until), Mode(settings.CDB_IOV_MODE))

    def clear(*, dry_run: bool) -> Clearing:
        origin = origin_of(request)
        if not dry_run and not origin.comment:
            raise InvalidInputError("A reason is required.")
        return clear_interval(
            global_tag=name, payload_type=fields["payload_type"], interval=interval, dry_run=dry_run, origin=origin
        )

    if "planned" in request.POST:
        return _to_change(name, as_previewed(request, name, lambda: clear(dry_run=False)).revision)
    planned, placement = newest_revision(name), clear(dry_run=True).placement
    with snapshot():
        drawing = draw_plan(name, [placement], clearing=True) if placement.cuts else {}
    shown = {"cleared": cuts_document(placement.cuts), "planned": planned, "changes": len(placement.cuts)}
    return show(request, "insert.html", values | shown | drawing)


def _row(values: dict[str, str]) -> IOVRow:
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
    until = values["until"].strip().lower() or "next"
    size = checked(lambda: parse_number("Bytes", values["size"].strip() or "0"))
    since = checked(lambda: inputs.moment("From", values["since"].strip()))
    end = until if until in ("open", "next") else checked(lambda: parse_end_text("Up to", until))
    if faults:
        raise InvalidInputError(" ".join(faults))
    names = ("payload_type", "payload_url", "checksum")
    moments = {"since": list(since), "until": end if isinstance(end, str) else list(end)}
    document = {name: values[name] for name in names} | {"size": size} | moments
    [row] = _parsed(orjson.dumps([document]))
    return row


def _read_file(request: HttpRequest) -> list[IOVRow]:
    """The rows of the file. Raises the errors of `read_iov_rows`."""
    file = request.FILES.get("file")
    if file is None:
        raise InvalidInputError("Choose a file.")
    options = Options(may_be_cut="may_be_cut" in request.POST, max_rows=settings.CDB_MAX_BULK_ROWS)
    return list(read_iov_rows(cast(BinaryIO, file.file), options))


def _parsed(rows: bytes) -> Iterable[IOVRow]:
    """The rows of a JSON array in the format of files."""
    return read_iov_rows(io.BytesIO(rows), Options(max_rows=settings.CDB_MAX_BULK_ROWS))


def _document(row: IOVRow) -> dict[str, Any]:
    """A row in the format of files; its end is in the mode of the service."""
    until = "open" if row.is_open else "next" if row.until is None else list(row.until)
    names = ("payload_type", "payload_url", "checksum", "size", "revision")
    return {name: getattr(row, name) for name in names} | {"since": list(row.since), "until": until}
