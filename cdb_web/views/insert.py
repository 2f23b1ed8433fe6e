"""The forms that insert payloads into a global tag, or clear an interval. Each shows what it would change before it stores it."""

import codecs
import hashlib
import io
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from cdb_rest.access.authentication import principal_of
from cdb_rest.analysis.difference import Comparison
from cdb_rest.api.proposals import rows_of
from cdb_rest.models import ChangeAction, PayloadType, RequestKind
from cdb_rest.parsing.iov_files import Options, read_iov_rows
from cdb_rest.parsing.parameters import parse_end_text
from cdb_rest.rules.access import Role
from cdb_rest.rules.errors import InvalidInputError
from cdb_rest.rules.iov_rows import IOVRow
from cdb_rest.rules.moment import END_OF_TIME, Interval, Mode
from cdb_rest.rules.status import Action, Status, role_for
from cdb_rest.writes.clearing import Clearing, clear_interval
from cdb_rest.writes.effect_sweep import Affected, read_effects
from cdb_rest.writes.effects import SHOWN, Effects
from cdb_rest.writes.imports import ImportOptions, ImportResult, import_payload_iovs
from cdb_web import inputs
from cdb_web.page import form_page, is_known, may
from cdb_web.writes import Steps, WriteService, find_tag, is_proposal, preview_and_store, proposing

FIELDS = ("payload_type", "payload_url", "checksum", "size", "since", "until")
KINDS = ("one", "file", "clear")
BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@form_page
def insert(request: HttpRequest, name: str) -> HttpResponse:
    """Forms for one payload, for a file with many, and for an interval without payload; `kind` says which one is sent.

    A POST shows what would change, and after that preview it stores that, or a request for it.
    """
    tag, kind = find_tag(name), request.POST.get("kind", "file") if request.method == "POST" else ""
    roles = {action: role_for(action, tag.status.name) for action in (Action.ADD_IOV, Action.REMOVE_IOV)}
    may_insert = may(request, roles[Action.ADD_IOV], name)
    may_clear = tag.status.name == Status.UNLOCKED and may(request, roles[Action.REMOVE_IOV], name)
    may_write = {"one": may_insert, "file": may_insert, "clear": may_clear}
    is_proposed = kind != "" and is_proposal(request, may_write=may_write.get(kind, True))
    values: dict[str, Any] = {
        "name": name,
        "tag": tag,
        "proposed": {
            one for one in KINDS if is_known(request) and (not may_write[one] or (is_proposed and one == kind))
        },
        "is_proposed": is_proposed,
        "reason": kind == "clear" or is_proposed,
        "kind": kind,
        "is_one_row": kind == "one",
        # The one that is in use is the first.
        "forms": sorted(KINDS, key=lambda one: one != kind),
        "types": PayloadType.objects.order_by("name").values_list("name", flat=True),
        "values": {field: request.POST.get(field, "") for field in (*FIELDS, "comment", "open_hides_later")},
        "may_insert": may_insert,
        "may_clear": may_clear,
        "may_clone": may(request, Role.MANAGER),
        "role": roles[Action.ADD_IOV],
    }

    def write() -> tuple[str, WriteService | Steps]:
        # Before the file is read.
        if not is_proposed:
            principal_of(request.META).require(Role.CONTRIBUTOR, name)
        content, text = _content(request) if kind == "file" else (b"", "")
        values.update(text=text, lines=len(text.splitlines()), digest=_digest(kind, values["values"], text))
        return name, _asked(request, values, content)

    def check() -> dict[str, Any]:
        if request.POST.get("previewed") != values["digest"]:
            raise InvalidInputError(
                "The input has changed since the preview. Nothing was stored; check the new preview."
            )
        if values["reason"] and not request.POST.get("comment", "").strip():
            raise InvalidInputError("A reason is required.")
        return {} if kind == "clear" else {"confirmed": request.POST.get("confirm") == "1"}

    def inspect(found: ImportResult | Clearing, comparison: Comparison) -> dict[str, Any]:
        return effect_values(found, comparison, values["rows"])

    return preview_and_store(request, "insert.html", values, write, check=check, inspect=inspect)


def effect_values(found: ImportResult | Clearing, comparison: Comparison, rows: Sequence[IOVRow]) -> dict[str, Any]:
    """The values for `insert_preview.html`: the effects of an import of rows, or of a clearing."""
    effects, lists = _effects(found, comparison), found.new_lists if isinstance(found, ImportResult) else []
    return {
        "effects": effects,
        "new_lists": {one.payload_type.name for one in lists},
        "shown": _shown(rows, effects),
        "max_shown": SHOWN,
    }


def _asked(request: HttpRequest, values: dict[str, Any], content: bytes) -> WriteService | Steps:
    """The write that the form asks for, or the steps that propose it; its rows, none for a clearing, become `rows` of the values.

    Raises `InvalidInputError`, and the errors of `read_iov_rows`.
    """
    name, fields = values["name"], values["values"]
    if values["kind"] == "clear":
        since, until = inputs.moment("From", fields["since"]), parse_end_text("Up to", fields["until"].strip().lower())
        interval = Interval.from_wire(since, until, Mode(settings.CDB_IOV_MODE))
        values["rows"] = []
        clear = partial(clear_interval, global_tag=name, payload_type=fields["payload_type"], interval=interval)
        end = "open" if until == END_OF_TIME else list(until)
        document: dict[str, Any] = {"payload_type": fields["payload_type"], "since": list(since), "until": end}
        return proposing(RequestKind.CLEAR, name, document, clear) if values["is_proposed"] else clear
    is_one = values["kind"] == "one"
    if is_one:
        rows = [_row(fields)]
    else:
        # People see in the text area whether the last line is whole.
        options = Options(may_be_cut="file" not in request.FILES, max_rows=settings.CDB_MAX_BULK_ROWS)
        rows = list(read_iov_rows(io.BytesIO(content), options))
    if not rows:
        raise InvalidInputError("The file has no rows.")
    values["rows"] = rows
    # An open end in the form of one row does so, as in the API.
    hides_later = is_one or fields["open_hides_later"] == "1"
    service = partial(
        import_payload_iovs,
        read=lambda: rows,
        global_tag=name,
        options=ImportOptions(hides_later=hides_later),
        action=ChangeAction.INSERT if is_one else ChangeAction.BULK,
        confirmed=True,
    )
    if not values["is_proposed"]:
        return service
    document = {"rows": [_document(row) for row in rows], "open_hides_later": hides_later}
    return proposing(RequestKind.IMPORT, name, document, service)


def _document(row: IOVRow) -> dict[str, Any]:
    """A row as in the JSON array of a file, for the document of a request."""
    until = "open" if row.is_open else "next" if row.until is None else list(row.until)
    found = {name: getattr(row, name) for name in ("payload_type", "payload_url", "checksum", "size", "revision")}
    return {name: value for name, value in found.items() if value is not None} | {
        "since": list(row.since),
        "until": until,
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
            labels.setdefault(number, []).append(warning.kind.replace("_", " "))
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


def _digest(kind: str, values: dict[str, str], text: str) -> str:
    """A hash of all that decides what a form stores, except its comment."""
    return hashlib.sha256(repr((kind, values | {"comment": ""}, text)).encode(errors="replace")).hexdigest()


def _row(values: dict[str, str]) -> IOVRow:
    """The row that the fields have, which are read as those of a file. Raises `InvalidInputError`."""
    # Names and payload URLs are not stripped.
    given = {name: values[name] if name.startswith("payload") else values[name].strip() for name in FIELDS}
    document = {name: text for name, text in given.items() if text}
    [row] = rows_of([document])
    return row
