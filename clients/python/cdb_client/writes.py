"""Writes: single ones, and imports of many rows."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

from cdb_client import errors
from cdb_client.moments import When, as_moment
from cdb_client.rows import read_rows, wire_moment
from cdb_client.sources import Item
from cdb_client.transport import Transport, segment

REQUEST_ROWS = 10_000
# Rows that a message names.
FAULTS_NAMED = 10


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
        since: When,
        until: When | tuple[int, str],
        *,
        checksum: str = "",
        size: int = 0,
        revision: str | None = None,
        comment: str | None = None,
        dry_run: bool = False,
        file: Path | str | None = None,
    ) -> Item:
        """Make a payload valid from `since` until `until`: a moment, the end of a major number, the next start, or for ever.

        `file` is a copy of the payload file, from which size and checksum (MD5) are computed. A refused dry run raises nothing:
        `refused` in the response has the reason.
        """
        if file is not None:
            if checksum or size:
                raise errors.InputError("Give either a file, or its checksum and size.")
            size, checksum = _describe(Path(file))
        body = {
            "global_tag": tag,
            "payload_type": payload_type,
            "payload_url": url,
            "checksum": checksum,
            "size": size,
            "revision": revision,
            "since": as_moment(since),
            "until": wire_moment(until),
        }
        about = f"tag {tag}, payload type {payload_type}, moment {as_moment(since)}"
        return self._write("POST", "payload-iovs/insert", body, comment, dry_run, about)

    def import_rows(
        self,
        tag: str,
        rows: Path | str | Iterable[Mapping[str, Any]] | Any,
        *,
        comment: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> Item:
        """Insert many rows: a file in CSV or JSON Lines, a DataFrame, or mappings. The columns are those of an export.

        A row without an end, or with an open one, is valid until the next start. `url` is another name of `payload_url`, and
        `since` and `until` may be there instead of two columns each. The rows are sent in requests of at most 10,000 rows, each
        of which the service checks, and stores completely or not at all, in the order given. After an error, the same import
        can be run again: rows that are valid already change nothing. A dry run checks each request without the effects of
        those before it.

        `progress` gets the number of rows done, and of all if it is known. Returns the numbers of `rows`, of `inserted` and
        `unchanged` ones, of existing rows that were `changed` or `removed`, and the tag's `revision` (None: no change). Raises
        `InputError` or `RefusedError`, with the line numbers of wrong rows.
        """
        mode = self._transport.get("user_settings/CDB_IOV_MODE").json()["CDB_IOV_MODE"]
        total = sum(1 for _ in read_rows(rows, mode)) if isinstance(rows, Path | str) else None
        summary: dict[str, Any] = dict.fromkeys(("rows", "inserted", "unchanged", "changed", "removed"), 0)
        summary |= {"revision": None, "dry_run": dry_run}
        remaining = read_rows(rows, mode)
        while batch := list(islice(remaining, REQUEST_ROWS)):
            document = self._insert_rows(tag, batch, comment, dry_run, summary["rows"])
            for row in document["rows"]:
                summary["unchanged" if row["unchanged"] else "inserted"] += 1
                summary["changed"] += sum(len(row[kind]) for kind in ("trimmed", "moved", "split"))
                summary["removed"] += len(row["detached"])
            summary["revision"] = document["revisions"].get(tag, summary["revision"])
            summary["rows"] += len(batch)
            if progress:
                progress(summary["rows"], total)
        return summary

    def _insert_rows(
        self, tag: str, batch: Sequence[tuple[str, Item]], comment: str | None, dry_run: bool, done: int
    ) -> Item:
        """Send one request of an import, after `done` rows. Raises an error that names the places of wrong rows."""
        body = [{"global_tag": tag, **row} for _, row in batch]
        body[0] |= {"comment": comment} if comment else {}
        query = [("dry_run", "1")] if dry_run else []
        try:
            # The idempotency key is a new one for each request. One that is made from the rows would let an import that
            # is repeated after a revert change nothing.
            document = self._transport.write("POST", "payload-iovs/insert", body, query, about=f"tag {tag}")
            if refused := document["refused"]:
                raise errors.RefusedError(f"{refused['detail']} (tag {tag})", refused)
        except errors.CdbError as error:
            text = faults(error.document.get("rows"), [place for place, _ in batch])
            text = f"{text} ({self._transport.config.server}, tag {tag})" if text else str(error)
            if done and not dry_run:
                text += f" The {done:,} rows before this request are stored."
            raise type(error)(text, error.document) from None
        return cast(Item, document)

    def create_tag(self, name: str, *, comment: str | None = None, dry_run: bool = False) -> Item:
        """Create an empty, unlocked global tag."""
        body = {"name": name, "status": "unlocked"}
        return self._write("POST", "gt", body, comment, dry_run, f"tag {name}")

    def create_type(self, name: str, *, comment: str | None = None, dry_run: bool = False) -> Item:
        """Create a payload type."""
        return self._write("POST", "pt", {"name": name}, comment, dry_run, f"payload type {name}")

    def clone(
        self, source: str, target: str, *, rev: int | None = None, comment: str | None = None, dry_run: bool = False
    ) -> Item:
        """Create an unlocked tag with the contents of another one, also of an earlier revision."""
        path = f"cloneGlobalTag/{segment(source)}/{segment(target)}" + ("" if rev is None else f"?rev={rev}")
        return self._write("POST", path, {}, comment, dry_run, f"tag {source}, clone {target}")

    def set_status(self, tag: str, status: str, *, comment: str | None = None, dry_run: bool = False) -> Item:
        """Change the status of a tag, for example to `locked`. Nothing can be changed any more in a `frozen` tag."""
        path = f"gt_change_status/{segment(tag)}/{segment(status)}"
        return self._write("PUT", path, {}, comment, dry_run, f"tag {tag}")

    def _write(self, method: str, path: str, body: Item, comment: str | None, dry_run: bool, about: str) -> Item:
        body |= {"comment": comment or "", "dry_run": dry_run}
        return cast(Item, self._transport.write(method, path, body, about=about))


def faults(rows: list[dict[str, Any]] | None, places: list[str]) -> str:
    """What is wrong with the first rows that the service names."""
    texts = []
    for row in (rows or ())[:FAULTS_NAMED]:
        fields = (f"{name}: {' '.join(fault)}" for name, fault in row.items() if isinstance(fault, list))
        texts.append(f"{places[row['row']]}: {row.get('detail') or ' '.join(fields)}")
    return " ".join(texts)


def _describe(path: Path) -> tuple[int, str]:
    """The size and the MD5 of a file. Raises `InputError`."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
            return file.tell(), digest.hexdigest()
    except OSError as error:
        raise errors.InputError(f"{path} cannot be read: {error}") from None
