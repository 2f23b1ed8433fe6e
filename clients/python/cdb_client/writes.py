"""Writes: single ones, and imports of many rows."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cdb_client import errors
from cdb_client.downloads import describe
from cdb_client.moments import Moment
from cdb_client.rows import Numbered, end_of, moment_of, read_rows
from cdb_client.transport import Transport, segment

REQUEST_ROWS = 10_000
# Different errors of rows that a message names.
FAULTS_NAMED = 10

# A response of the service, as JSON.
Document = dict[str, Any]
# A moment, as its class, as text such as "5,0", or as a pair. An end may also be "next", "open" or (7, "end").
AnyMoment = Moment | str | tuple[int, int]
AnyEnd = AnyMoment | tuple[int, str]


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
    ) -> Document:
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
            "since": list(moment_of(since)),
            "until": end_of(until),
        }
        about = f"tag {tag}, payload type {payload_type}, moment {moment_of(since)}"
        return self._write("POST", "payload-iovs/insert", body, comment, dry_run, about)

    def import_rows(
        self,
        tag: str,
        rows: Path | str | Iterable[Mapping[str, Any]] | Any,
        *,
        comment: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> Document:
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
        mode = self._transport.get("user_settings/CDB_IOV_MODE").json()["CDB_IOV_MODE"]
        total, place = None, "row"
        if isinstance(rows, Path | str):
            place = f"{rows}, line"
            total = _count_valid(read_rows(rows, mode), place)
        summary: dict[str, Any] = dict.fromkeys(("rows", "inserted", "unchanged", "changed", "removed"), 0)
        summary |= {"revision": None, "dry_run": dry_run}
        faults: list[tuple[int, str]] = []
        kind: type[errors.CdbError] = errors.RefusedError
        query = [("dry_run", "1")] if dry_run else []
        remaining = read_rows(rows, mode)
        while batch := list(islice(remaining, REQUEST_ROWS)):
            stored = 0 if dry_run else summary["rows"]
            _count_valid(batch, place, stored)
            numbers = [number for number, _ in batch]
            sent = [{"global_tag": tag, **row} for _, row in batch if isinstance(row, dict)]
            sent[0] |= {"comment": comment} if comment else {}
            # The key is a new one for each request. One that is made from the rows would let an import that is repeated after
            # a revert change nothing.
            try:
                document = self._transport.write("POST", "payload-iovs/insert", sent, query, about=f"tag {tag}")
            except errors.CdbError as error:
                if not error.document.get("rows"):
                    error.args = (f"{error}{_stored(stored)}",)
                    raise
                found = _faults(error.document["rows"], numbers)
                raise _faulty(type(error), place, found, self._about(tag), stored) from None
            if refused := document["refused"]:
                faults += _faults(refused["rows"], numbers) or [(numbers[0], refused["detail"])]
                kind = errors.InputError if refused["code"] == "invalid_input" else kind
            else:
                _add(summary, document, tag)
            summary["rows"] += len(batch)
            if progress:
                progress(summary["rows"], total)
        if faults:
            raise _faulty(kind, place, faults, self._about(tag))
        return summary

    def create_tag(
        self, name: str, *, description: str = "", comment: str | None = None, dry_run: bool = False
    ) -> Document:
        """Create an empty, unlocked global tag."""
        body = {"name": name, "status": "unlocked"} | ({"description": description} if description else {})
        return self._write("POST", "gt", body, comment, dry_run, f"tag {name}")

    def create_type(
        self, name: str, *, description: str = "", comment: str | None = None, dry_run: bool = False
    ) -> Document:
        """Create a payload type."""
        body = {"name": name} | ({"description": description} if description else {})
        return self._write("POST", "pt", body, comment, dry_run, f"payload type {name}")

    def clone(
        self, source: str, target: str, *, rev: int | None = None, comment: str | None = None, dry_run: bool = False
    ) -> Document:
        """Create an unlocked tag with the contents of another one, also of an earlier revision."""
        path = f"cloneGlobalTag/{segment(source)}/{segment(target)}" + ("" if rev is None else f"?rev={rev}")
        return self._write("POST", path, {}, comment, dry_run, f"tag {source}, clone {target}")

    def set_status(self, tag: str, status: str, *, comment: str | None = None, dry_run: bool = False) -> Document:
        """Change the status of a tag, for example to `locked`. Nothing can be changed any more in a `frozen` tag."""
        path = f"gt_change_status/{segment(tag)}/{segment(status)}"
        return self._write("PUT", path, {}, comment, dry_run, f"tag {tag}")

    def set_limits(
        self, tag: str, limits: Mapping[str, Any], *, comment: str | None = None, dry_run: bool = False
    ) -> Document:
        """Set the limits of a tag, `closed_until` (a moment) and `largest_major`. None removes a limit."""
        body = dict(limits)
        if body.get("closed_until") is not None:
            body["closed_until"] = list(moment_of(body["closed_until"]))
        return self._write("PUT", f"global-tags/{segment(tag)}/limits", body, comment, dry_run, f"tag {tag}")

    def revert(self, tag: str, revision: int, *, comment: str | None = None, dry_run: bool = False) -> Document:
        """Give a tag the contents that it had at a revision, as a new change."""
        path = f"global-tags/{segment(tag)}/revert"
        return self._write("POST", path, {"revision": revision}, comment, dry_run, f"tag {tag}, revision {revision}")

    def clear(
        self, tag: str, payload_type: str, since: AnyMoment, until: AnyEnd, *, comment: str, dry_run: bool = False
    ) -> Document:
        """Make no payload of a type valid from `since` until `until`. The service requires the reason."""
        body = {
            "global_tag": tag,
            "payload_type": payload_type,
            "since": list(moment_of(since)),
            "until": end_of(until),
            "reason": comment,
        }
        about = f"tag {tag}, payload type {payload_type}, moment {moment_of(since)}"
        return self._write("POST", "payload-iovs/clear", body, None, dry_run, about)

    def _write(
        self, method: str, path: str, body: dict[str, Any], comment: str | None, dry_run: bool, about: str
    ) -> Document:
        more = ({"comment": comment} if comment else {}) | ({"dry_run": True} if dry_run else {})
        found: dict[str, Any] = self._transport.write(method, path, body | more, about=about)
        return found

    def _about(self, tag: str) -> str:
        return f"{self._transport.config.server}, tag {tag}"


def _count_valid(rows: Iterable[Numbered], place: str, stored: int = 0) -> int:
    """The number of rows. Raises `InputError` if one is wrong."""
    count, faults = 0, []
    for number, row in rows:
        count += 1
        if isinstance(row, str):
            faults.append((number, row))
    if faults:
        raise _faulty(errors.InputError, place, faults, "", stored)
    return count


def _faults(rows: list[dict[str, Any]], numbers: list[int]) -> list[tuple[int, str]]:
    return [(numbers[row["row"]], row["detail"]) for row in rows]


def _faulty(
    kind: type[errors.CdbError], place: str, faults: list[tuple[int, str]], about: str, stored: int = 0
) -> errors.CdbError:
    lines: dict[str, list[int]] = {}
    for number, fault in faults:
        lines.setdefault(fault, []).append(number)
    shown = [
        f"{place} {numbers[0]}{f' and {len(numbers) - 1} more' if len(numbers) > 1 else ''}: {fault}"
        for fault, numbers in lines.items()
    ]
    more = f" And {len(shown) - FAULTS_NAMED} other errors." if len(shown) > FAULTS_NAMED else ""
    more += _stored(stored)
    return kind(" ".join(shown[:FAULTS_NAMED]) + more + (f" ({about})" if about else ""))


def _add(summary: dict[str, Any], document: Mapping[str, Any], tag: str) -> None:
    for row in document["rows"]:
        summary["unchanged" if row["unchanged"] else "inserted"] += 1
        summary["changed"] += sum(len(row[kind]) for kind in ("trimmed", "moved", "split") if kind in row)
        summary["removed"] += len(row.get("detached", ()))
    summary["revision"] = document["revisions"].get(tag, summary["revision"])


def _stored(rows: int) -> str:
    return f" The {rows:,} rows before this request are stored." if rows else ""
