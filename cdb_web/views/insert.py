"""The forms that insert payloads into a global tag, or clear an interval. Each shows what it would change before it stores it."""

import codecs
import hashlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from cdb_rest.analysis.difference import Comparison
from cdb_rest.models import ChangeAction, PayloadType
from cdb_rest.parsing.iov_files import CutFileError, Options, read_iov_rows
from cdb_rest.parsing.parameters import parse_end_text, parse_number
from cdb_rest.rules.access import Origin, Role
from cdb_rest.rules.errors import CdbError, InvalidInputError
from cdb_rest.rules.iov_rows import IOVRow
from cdb_rest.rules.moment import Interval, Mode
from cdb_rest.rules.status import Action, role_for
from cdb_rest.writes.clearing import Clearing, clear_interval
from cdb_rest.writes.effect_sweep import Affected, read_effects
from cdb_rest.writes.effects import SHOWN, Effects
from cdb_rest.writes.imports import ImportOptions, ImportResult, import_payload_iovs
from cdb_rest.writes.previews import preview
from cdb_web import inputs
from cdb_web.net_effect import MAX_TYPES, Drawing, draw
from cdb_web.page import form_page, problem_of, show
from cdb_web.permissions import may
from cdb_web.previews import to_change
from cdb_web.writes import as_previewed, dry_run_origin, find_tag, newest_revision, origin_of

FIELDS = ("payload_type", "payload_url", "checksum", "size", "since", "until")
# Differences in a preview.
MAX_DIFFERENCES = 300
KINDS = ("one", "file", "clear")
LABELS = {
    "removed": "removes",
    "gap": "gap",
    "far_start": "far away",
    "long": "long",
    "other_checksum": "other checksum",
    "other_case": "other spelling",
}
BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Asked:
    """What a form asks for: the rows that it inserts, none for a clearing, and the write, given its origin and whether it is
    confirmed.
    """

    rows: Sequence[IOVRow]
    write: Callable[[Origin, bool], ImportResult | Clearing]


@form_page
def insert(request: HttpRequest, name: str) -> HttpResponse:
    """Forms for one payload, for a file with many, and for an interval without payload; `kind` says which one is sent.

    A POST shows what would change, and with the field `store` it stores that.
    """
    tag, kind = find_tag(name), request.POST.get("kind", "file") if request.method == "POST" else ""
    roles = {action: role_for(action, tag.status.name) for action in (Action.ADD_IOV, Action.REMOVE_IOV)}
    values: dict[str, Any] = {
        "name": name,
        "tag": tag,
        "kind": kind,
        "is_one_row": kind == "one",
        # The one that is in use is the first.
        "forms": sorted(KINDS, key=lambda one: one != kind),
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
        "values": {field: request.POST.get(field, "") for field in (*FIELDS, "comment", "open_hides_later")},
        "may_insert": may(request, roles[Action.ADD_IOV], name),
        "may_clear": tag.status.name == "unlocked" and may(request, roles[Action.REMOVE_IOV], name),
        "may_clone": may(request, Role.MANAGER),
        "role": roles[Action.ADD_IOV],
        "is_new": "new" in request.GET,
    }
    if request.method != "POST":
        return show(request, "insert.html", values)
    try:
        # Before the file is read.
        dry_run_origin(request).principal.require(Role.CONTRIBUTOR, name)
        content, text = _content(request) if kind == "file" else (b"", "")
        values |= {"text": text, "lines": len(text.splitlines()), "digest": _digest(values, text)}
        asked = _asked(request, values, content)
        problem: dict[str, Any] = {}
        status = 200
        if "store" in request.POST:
            try:
                return _store(request, values, asked)
            except CdbError as error:
                # With the preview, also if the tag has changed. It raises the error again if there is none.
                problem, status = problem_of(error)
                problem["wrong_rows"] = []
        return show(request, "insert.html", values | _preview(request, name, asked) | problem, status=status)
    except CdbError as error:
        problem, status = problem_of(error)
        faults = _faults(problem["wrong_rows"], values.get("text", "")) if kind == "file" else []
        shown = {"may_be_cut": isinstance(error, CutFileError), "faults": faults}
        return show(request, "insert.html", values | problem | shown, status=status)


def _asked(request: HttpRequest, values: dict[str, Any], content: bytes) -> Asked:
    """What the form asks for. Raises `InvalidInputError`, and the errors of `read_iov_rows`."""
    name, fields = values["name"], values["values"]
    if values["kind"] == "clear":
        since, until = inputs.moment("From", fields["since"]), parse_end_text("Up to", fields["until"].strip().lower())
        interval = Interval.from_wire(since, until, Mode(settings.CDB_IOV_MODE))
        return Asked(
            [],
            # It always has a reason instead of a confirmation.
            lambda origin, _: clear_interval(
                global_tag=name, payload_type=fields["payload_type"], interval=interval, origin=origin
            ),
        )
    is_one = values["kind"] == "one"
    if is_one:
        rows = [_row(fields)]
    else:
        # People see in the text area whether the last line is whole.
        options = Options(may_be_cut="file" not in request.FILES, max_rows=settings.CDB_MAX_BULK_ROWS)
        rows = list(read_iov_rows(io.BytesIO(content), options))
    if not rows:
        raise InvalidInputError("The file has no rows.")
    return Asked(
        rows,
        # One row is placed by the interval rule, those of a file as a set.
        lambda origin, confirmed: import_payload_iovs(
            read=lambda: rows,
            global_tag=name,
            options=ImportOptions(in_order=is_one, hides_later=fields["open_hides_later"] == "1"),
            action=ChangeAction.INSERT if is_one else ChangeAction.BULK,
            confirmed=confirmed,
            origin=origin,
        ),
    )


def _store(request: HttpRequest, values: dict[str, Any], asked: Asked) -> HttpResponse:
    """Make the write, and redirect to its change, or to the history if nothing changed."""
    name, origin = values["name"], origin_of(request)
    if request.POST.get("previewed") != values["digest"]:
        raise InvalidInputError("The input has changed since the preview. Nothing was stored; check the new preview.")
    if values["kind"] == "clear" and not origin.comment:
        raise InvalidInputError("A reason is required.")
    confirmed = request.POST.get("confirm") == "1"
    as_previewed(request, name, lambda: asked.write(origin, confirmed))
    return to_change(request, name)


def _preview(request: HttpRequest, name: str, asked: Asked) -> dict[str, Any]:
    # The revision is read first: if the tag changes now, it is not the one of the preview, and nothing is stored.
    planned = newest_revision(name)

    def inspect(found: ImportResult | Clearing, comparison: Comparison) -> tuple[Effects, set[str], list[Drawing]]:
        effects, lists = _effects(found, comparison), found.new_lists if isinstance(found, ImportResult) else []
        changed = [(one.payload_type, one.interval) for one in effects.types if one.interval is not None]
        drawings = [draw(comparison, *one) for one in changed[:MAX_TYPES]]
        return effects, {one.payload_type.name for one in lists}, drawings

    effects, new_lists, drawings = preview(name, lambda: asked.write(dry_run_origin(request), True), inspect)
    differences = [(one.payload_type, difference) for one in effects.types for difference in one.differences]
    return {
        "effects": effects,
        "new_lists": new_lists,
        "drawings": drawings,
        "undrawn": sum(one.interval is not None for one in effects.types) - len(drawings),
        "differences": differences[:MAX_DIFFERENCES],
        "difference_count": sum(one.difference_count for one in effects.types),
        "rows": asked.rows,
        "count": len(asked.rows),
        "max_shown": SHOWN,
        "shown": _shown(asked.rows, effects),
        "planned": planned,
    }


def _effects(found: ImportResult | Clearing, comparison: Comparison) -> Effects:
    if isinstance(found, ImportResult):
        return found.effects
    payload_type = found.placement.payload_list.payload_type.name
    before, after = (side.lists[payload_type][0] for side in (comparison.a, comparison.b))
    return read_effects([Affected(payload_type, before, after, found.placement.interval)], has_file=False)


def _shown(rows: Sequence[IOVRow], effects: Effects) -> list[tuple[IOVRow, list[str]]]:
    """The rows that warnings are about, and the first `SHOWN` others, in their order, each with the kinds of its warnings."""
    labels: dict[int, list[str]] = {}
    for warning in effects.warnings:
        for number in warning.rows:
            labels.setdefault(number, []).append(LABELS[warning.kind])
    others = [row for row in rows if row.number not in labels][:SHOWN]
    shown = [*(row for row in rows if row.number in labels), *others]
    return [(row, labels.get(row.number, [])) for row in sorted(shown, key=lambda row: row.number)]


def _content(request: HttpRequest) -> tuple[bytes, str]:
    """The file of the form and its text: a new file, or the text area with the lines that were edited one by one."""
    file = request.FILES.get("file")
    if file is not None:
        content: bytes = file.read()
        encoding = "utf-16" if content.startswith(BYTE_ORDER_MARKS) else "utf-8-sig"
        return content, content.decode(encoding, errors="replace").replace("\r\n", "\n")
    if "text" not in request.POST:
        raise InvalidInputError("Choose a file.")
    lines = request.POST["text"].replace("\r\n", "\n").split("\n")
    for place, line in enumerate(lines):
        edited = request.POST.get(f"line-{place + 1}", line)
        if edited != request.POST.get(f"was-{place + 1}", line):
            lines[place] = edited
    text = "\n".join(lines)
    return text.encode(errors="replace"), text


def _digest(values: dict[str, Any], text: str) -> str:
    """A hash of all that decides what a form stores, except its comment."""
    fields = {**values["values"], "comment": ""}
    return hashlib.sha256(repr((values["kind"], fields, text)).encode(errors="replace")).hexdigest()


def _faults(wrong_rows: Iterable[tuple[int, str]], text: str) -> list[tuple[int, str, str | None]]:
    """The number of each faulty line, what is wrong, and the line; None in a JSON array, whose rows are no lines."""
    lines = [] if text.lstrip().startswith("[") else text.split("\n")
    return [(number, fault, lines[number - 1] if number <= len(lines) else None) for number, fault in wrong_rows]


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
    [row] = read_iov_rows(io.BytesIO(orjson.dumps([document])), Options())
    return row
