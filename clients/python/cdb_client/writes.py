"""Writes: single ones, and imports of many rows."""

import csv
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from cdb_client import errors
from cdb_client.files import describe
from cdb_client.moments import OPEN, Moment, exclusive_end, wire_end
from cdb_client.transport import Transport, segment

REQUEST_ROWS = 10_000
# Faulty rows that an error names.
FAULTS_NAMED = 10
START, END = ("major_iov", "minor_iov"), ("major_iov_end", "minor_iov_end")
PAYLOAD = ("payload_type", "payload_url", "checksum", "size", "revision")
COLUMNS = {*PAYLOAD, *START, *END, "since", "until", "mode"}

# A moment, as its class, as text such as "5,0", or as a pair. An end may also be "next", "open" or (7, "end").
AnyMoment = Moment | str | tuple[int, int]
AnyEnd = AnyMoment | tuple[int, str]
Row = Mapping[str, Any]
# The number of the line or row in its source, and its values; or what is wrong with it.
Numbered = tuple[int, dict[str, Any] | str]


class Writes:
    """Changes what the service stores.

    Each method returns the response of the service. `comment` is the reason for the change log. With `dry_run`, nothing is
    stored, and the response says what would be. A request that got no response is sent again with the same idempotency key, so
    that it is carried out once. The errors are those of `Transport`, among them `RefusedError` and `NotAllowedError`.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def insert(
        self,
        tag: str,
        payload_type: str,
        url: str,
        since: AnyMoment,
        until: AnyEnd,
        *,
        checksum: str = "",
        size: int = 0,
        revision: str | None = None,
        comment: str | None = None,
        dry_run: bool = False,
        file: Path | str | None = None,
    ) -> dict[str, Any]:
        """Make a payload valid from `since` until `until`: a moment, the end of a major number, the next start, or for ever.

        `file` is a copy of the payload file, from which size and checksum (MD5) are computed. A refused dry run raises nothing:
        `refused` in the response has the reason.
        """
        if file is not None:
            size, checksum = describe(Path(file))
        body = {
            "global_tag": tag,
            "payload_type": payload_type,
            "payload_url": url,
            "checksum": checksum,
            "size": size,
            "revision": revision,
            "since": list(_moment(since)),
            "until": _end(until),
        }
        about = f"tag {tag}, payload type {payload_type}, moment {_moment(since)}"
        return self._write("POST", "payload-iovs/insert", body, comment, dry_run, about)

    def import_rows(
        self,
        tag: str,
        rows: Path | str | Iterable[Row] | Any,
        *,
        comment: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> dict[str, Any]:
        """Insert many rows: a file in CSV or JSON Lines, a DataFrame, or mappings. The columns are those of an export.

        A row without an end, or with an open one, is valid until the next start. `url` is another name of `payload_url`, and
        `since` and `until` may be there instead of two columns each. Files are checked before the first request. The rows are
        sent in requests of at most 10,000 rows, each of which is stored completely or not at all, in the order given. After an
        error, the same import can be run again: rows that are valid already change nothing. A dry run checks each request
        without the effects of those before it.

        `progress` gets the number of rows done, and of all if it is known. Returns the numbers of `rows`, of `inserted` and
        `unchanged` ones, of existing rows that were `changed` or `removed`, and the tag's `revision` (None: no change). Raises
        `InputError` or `RefusedError`, with the line numbers of wrong rows.
        """
        total, place = None, "row"
        if isinstance(rows, Path | str):
            place = f"{rows}, line"
            total = _count_valid(self._numbered(rows), place)
        summary: dict[str, Any] = dict.fromkeys(("rows", "inserted", "unchanged", "changed", "removed"), 0)
        summary |= {"revision": None, "dry_run": dry_run}
        faults: list[tuple[int, str]] = []
        kind: type[errors.CdbError] = errors.RefusedError
        query = [("dry_run", "1")] if dry_run else []
        remaining = self._numbered(rows)
        while batch := list(islice(remaining, REQUEST_ROWS)):
            _count_valid(batch, place, summary["rows"])
            numbers = [number for number, _ in batch]
            sent = [{"global_tag": tag, **row} for _, row in batch if isinstance(row, dict)]
            sent[0] |= {"comment": comment} if comment else {}
            # The key is a new one for each request. One that is made from the rows would let an import that is repeated after
            # a revert change nothing.
            try:
                document = self._transport.write("POST", "payload-iovs/insert", sent, query, about=f"tag {tag}")
            except errors.CdbError as error:
                if not error.document.get("rows"):
                    raise
                found = _faults(error.document["rows"], numbers)
                raise _faulty(type(error), place, found, self._about(tag), summary["rows"], dry_run) from None
            if refused := document["refused"]:
                faults += _faults(refused["rows"], numbers) or [(numbers[0], refused["detail"])]
                kind = errors.InputError if refused["code"] == "invalid_input" else kind
            else:
                _add(summary, document, tag)
            summary["rows"] += len(batch)
            if progress:
                progress(summary["rows"], total)
        if faults:
            raise _faulty(kind, place, faults, self._about(tag), 0, dry_run)
        return summary

    def create_tag(
        self, name: str, *, description: str = "", comment: str | None = None, dry_run: bool = False
    ) -> dict[str, Any]:
        """Create an empty, unlocked global tag."""
        body = {"name": name, "status": "unlocked"} | ({"description": description} if description else {})
        return self._write("POST", "gt", body, comment, dry_run, f"tag {name}")

    def create_type(
        self, name: str, *, description: str = "", comment: str | None = None, dry_run: bool = False
    ) -> dict[str, Any]:
        """Create a payload type."""
        body = {"name": name} | ({"description": description} if description else {})
        return self._write("POST", "pt", body, comment, dry_run, f"payload type {name}")

    def clone(
        self,
        source: str,
        target: str,
        *,
        rev: int | None = None,
        comment: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Create an unlocked tag with the contents of another one, also of an earlier revision."""
        path = f"cloneGlobalTag/{segment(source)}/{segment(target)}" + ("" if rev is None else f"?rev={rev}")
        return self._write("POST", path, {}, comment, dry_run, f"tag {source}, clone {target}")

    def set_status(self, tag: str, status: str, *, comment: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Change the status of a tag, for example to `locked`. Nothing can be changed any more in a `frozen` tag."""
        path = f"gt_change_status/{segment(tag)}/{segment(status)}"
        return self._write("PUT", path, {}, comment, dry_run, f"tag {tag}")

    def set_limits(
        self,
        tag: str,
        limits: Mapping[str, Any],
        *,
        comment: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Set the limits of a tag, `closed_until` (a moment) and `largest_major`. None removes a limit."""
        body = dict(limits)
        if body.get("closed_until") is not None:
            body["closed_until"] = list(_moment(body["closed_until"]))
        return self._write("PUT", f"global-tags/{segment(tag)}/limits", body, comment, dry_run, f"tag {tag}")

    def revert(self, tag: str, revision: int, *, comment: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Give a tag the contents that it had at a revision, as a new change."""
        path = f"global-tags/{segment(tag)}/revert"
        return self._write("POST", path, {"revision": revision}, comment, dry_run, f"tag {tag}, revision {revision}")

    def clear(
        self,
        tag: str,
        payload_type: str,
        since: AnyMoment,
        until: AnyEnd,
        *,
        comment: str,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Make no payload of a type valid from `since` until `until`. The service requires the reason."""
        body = {
            "global_tag": tag,
            "payload_type": payload_type,
            "since": list(_moment(since)),
            "until": _end(until),
            "reason": comment,
        }
        about = f"tag {tag}, payload type {payload_type}, moment {_moment(since)}"
        return self._write("POST", "payload-iovs/clear", body, None, dry_run, about)

    def _write(
        self, method: str, path: str, body: dict[str, Any], comment: str | None, dry_run: bool, about: str
    ) -> dict[str, Any]:
        more = ({"comment": comment} if comment else {}) | ({"dry_run": True} if dry_run else {})
        found: dict[str, Any] = self._transport.write(method, path, body | more, about=about)
        return found

    def _about(self, tag: str) -> str:
        return f"{self._transport.config.server}, tag {tag}"

    @cached_property
    def _mode(self) -> str:
        return str(self._transport.get("user_settings/CDB_IOV_MODE").json()["CDB_IOV_MODE"])

    def _numbered(self, rows: Any) -> Iterator[Numbered]:
        for number, values in _read(rows):
            try:
                yield number, values if isinstance(values, str) else self._insertion(values)
            except errors.InputError as error:
                yield number, str(error)

    def _insertion(self, given: dict[str, Any]) -> dict[str, Any]:
        """The row of a request, in the form of `payload-iovs/insert`, without the tag. Raises `InputError`."""
        values = {str(name): value for name, value in given.items() if value is not None and value != ""}
        if "url" in values:
            values["payload_url"] = values.pop("url")
        if unknown := values.keys() - COLUMNS:
            raise errors.InputError(f"Unknown column {min(unknown)!r}; the columns are those of an export.")
        since = _moment(values["since"]) if "since" in values else _pair(values, START)
        if since is None:
            raise errors.InputError("The start is missing: since, or major_iov and minor_iov.")
        until = _end(values["until"]) if "until" in values else _end(_pair(values, END) or "next")
        mode = values.get("mode")
        if mode not in (None, "continuous", "discrete"):
            raise errors.InputError(f"mode must be continuous or discrete (got {mode!r}).")
        if isinstance(until, list):
            major, minor = until
            if until == list(OPEN):
                until = "next"
            elif mode and isinstance(minor, int) and mode != self._mode:
                until = list(wire_end(exclusive_end(Moment(int(major), minor), mode), self._mode))
        elif until == "open":
            until = "next"
        row = {name: values[name] for name in PAYLOAD if name in values}
        if "size" in row:
            row["size"] = _number("size", row["size"])
        return {"checksum": "", **row, "since": list(since), "until": until}


def _read(rows: Any) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The values of each row by column, with its number from 1: that of its line in a file. A text is a fault."""
    if isinstance(rows, Path | str):
        try:
            with Path(rows).open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                file.seek(0)
                yield from _read_json_lines(file) if first.lstrip().startswith("{") else _read_csv(file)
        except (OSError, UnicodeDecodeError) as error:
            raise errors.InputError(f"{rows} cannot be read: {error}") from None
        return
    if hasattr(rows, "to_dict"):
        rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
    for number, values in enumerate(rows, 1):
        yield number, dict(values)


def _read_json_lines(file: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            yield number, f"It is not valid JSON: {error}."
            continue
        yield number, values if isinstance(values, dict) else "A line must be a JSON object."


def _read_csv(file: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    reader = csv.reader(file, strict=True)
    try:
        names = next(reader, [])
        if "payload_type" not in names:
            yield 1, "It is neither JSON Lines nor CSV with the columns of an export."
            return
        for fields in reader:
            if len(fields) == len(names):
                yield reader.line_num, dict(zip(names, fields, strict=True))
            elif fields:
                yield reader.line_num, f"It has {len(fields)} fields instead of {len(names)}."
    except csv.Error as error:
        yield reader.line_num, f"It is not valid CSV: {error}."


def _count_valid(rows: Iterable[Numbered], place: str, stored: int = 0) -> int:
    """The number of rows. Raises `InputError` if one is wrong."""
    count, faults = 0, []
    for number, row in rows:
        count += 1
        if isinstance(row, str):
            faults.append((number, row))
    if faults:
        raise _faulty(errors.InputError, place, faults, "", stored, dry_run=False)
    return count


def _faults(rows: list[dict[str, Any]], numbers: list[int]) -> list[tuple[int, str]]:
    return [(numbers[row["row"]], row["detail"]) for row in rows]


def _faulty(
    kind: type[errors.CdbError], place: str, faults: list[tuple[int, str]], about: str, stored: int, dry_run: bool
) -> errors.CdbError:
    lines: dict[str, list[int]] = {}
    for number, fault in faults:
        lines.setdefault(fault, []).append(number)
    shown = [
        f"{place} {numbers[0]}{f' and {len(numbers) - 1} more' if len(numbers) > 1 else ''}: {fault}"
        for fault, numbers in lines.items()
    ]
    more = f" And {len(shown) - FAULTS_NAMED} other errors." if len(shown) > FAULTS_NAMED else ""
    if stored and not dry_run:
        more += f" The {stored:,} rows before this request are stored."
    return kind(" ".join(shown[:FAULTS_NAMED]) + more + (f" ({about})" if about else ""))


def _add(summary: dict[str, Any], document: Mapping[str, Any], tag: str) -> None:
    for row in document["rows"]:
        summary["unchanged" if row["unchanged"] else "inserted"] += 1
        summary["changed"] += sum(len(row[kind]) for kind in ("trimmed", "moved", "split") if kind in row)
        summary["removed"] += len(row.get("detached", ()))
    summary["revision"] = document["revisions"].get(tag, summary["revision"])


def _moment(value: Any) -> Moment:
    if isinstance(value, str):
        return Moment.parse(value)
    if isinstance(value, list | tuple) and len(value) == 2:
        return Moment.checked(_number("a moment", value[0]), _number("a moment", value[1]))
    return Moment.checked(_number("a moment", value), 0)


def _end(value: Any) -> str | list[int | str]:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("next", "open"):
            return text
        major, _, minor = text.partition(",")
        value = (major, minor) if minor == "end" else value
    if isinstance(value, list | tuple) and len(value) == 2 and value[1] == "end":
        return [_number("the end", value[0]), "end"]
    return list(_moment(value))


def _pair(values: Row, names: tuple[str, str]) -> tuple[Any, Any] | None:
    given = [values.get(name) for name in names]
    if given == [None, None]:
        return None
    if None in given:
        raise errors.InputError(f"A moment has two numbers: {' and '.join(names)}.")
    major, minor = names
    number = _number(major, values[major])
    return number, "end" if values[minor] == "end" else _number(minor, values[minor])


def _number(name: str, value: Any) -> int:
    """A number of a row: an integer, also of numpy, or a text of digits. A column of floats may have rounded large numbers."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        raise errors.InputError(f"{name} must be a whole number from 0 to 2^63-1 (got {value!r}).") from None
