"""Compiling: from the rows of a global tag in PostgreSQL to the files of a compiled tag."""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.compiled import directory
from cdb_rest.compiled.collector import read_parts
from cdb_rest.compiled.manifest import CompiledList, Manifest, UnusableError
from cdb_rest.compiled.writer import Writer
from cdb_rest.connections.postgresql import fetch_all
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.history.contents import find_past, past_lists
from cdb_rest.rules.as_of import AsOf
from cdb_rest.rules.errors import GlobalTagNotFoundError

STATE = named_sql.load("compile_state")
LISTS = named_sql.load("compile_lists")
PRESENT_ROWS = named_sql.load("compile_rows")
PAST_ROWS = named_sql.load("compile_past_rows")
IDENTITY = named_sql.load("compile_identity")
SETTINGS = named_sql.load("export_settings")

# How far it is: rows that have been read, and all rows (0: unknown).
Progress = Callable[[int, int], None]


class _Pace:
    """Limits the work of this process to a share of a core, by sleeping: 1 is no limit."""

    def __init__(self, share: float) -> None:
        self._share = share
        # CPU time, because a process with low priority waits for the CPU anyway.
        self._begin = time.process_time()

    def pause(self) -> None:
        """Sleep in proportion to the CPU time since the last pause."""
        if self._share < 1:
            time.sleep((time.process_time() - self._begin) * (1 / self._share - 1))
            self._begin = time.process_time()


@dataclass(frozen=True)
class _Source:
    """What is compiled: fields of the manifest, the statement of the rows with its parameters, the lists, the number of rows."""

    fields: dict[str, Any]
    statement: str
    values: dict[str, Any]
    lists: list[tuple[int, str, int | None]]
    rows: int


def compile_tag(
    tag: str, revision: int | None = None, *, share: float = 1, progress: Progress = lambda done, total: None
) -> Path:
    """Compile the present state of a tag, or a past revision. Returns the directory of the compiled tag.

    It replaces the one that was made of an earlier state. `share` is the share of a core that it uses. Raises
    `GlobalTagNotFoundError`, `RevisionNotFoundError`, `RevisionPrunedError`, `UnusableError`, `OSError`, for example if
    the disk is full, or `django.db.Error`.
    """
    with directory.new() as path:
        manifest = _write(path, tag, revision, share, progress)
        return directory.add(path, manifest)


def _write(path: Path, tag: str, revision: int | None, share: float, progress: Progress) -> Manifest:
    begin, pace = time.monotonic(), _Pace(share)
    with contextlib.ExitStack() as stack:
        with snapshot():
            source = _find_present(tag) if revision is None else _find_past(tag, revision)
            writer = stack.enter_context(contextlib.closing(Writer(path, len(source.lists))))
            # No statement timeout: the pace may be slow.
            with connection.cursor() as cursor:
                cursor.execute(SETTINGS, {"milliseconds": "0"})
            for records in read_parts(source.statement, source.values, source.rows, with_history=revision is not None):
                writer.append(records)
                progress(writer.total, source.rows)
                pace.pause()
        block, files = writer.finish(pace.pause)
    lists = tuple(CompiledList(*one, size) for one, size in zip(source.lists, writer.sizes.tolist(), strict=True))
    return Manifest(
        **source.fields,
        compiled=datetime.now(UTC),
        seconds=round(time.monotonic() - begin, 3),
        block=block,
        lists=lists,
        files=files,
    )


def database_identity() -> str | None:
    """The identity of the database on the current connection, None for a standby. Raises `django.db.Error`."""
    identity: str | None
    [(identity,)] = fetch_all(IDENTITY, {})
    return identity


def _find_present(tag: str) -> _Source:
    states = fetch_all(STATE, {"tag": tag})
    if not states:
        raise GlobalTagNotFoundError(tag)
    database, tag_id, revision, changed, version, past_version, status, last_modified, horizon = states[0]
    fields = {
        "database": _primary(database),
        "tag": tag,
        "tag_id": tag_id,
        "revision": revision,
        "changed": changed,
        "version": version,
        "past_version": past_version,
        "status": status,
        "last_modified": last_modified,
        "horizon": horizon,
    }
    found = fetch_all(LISTS, {"tag_id": tag_id, "horizon": horizon})
    lists = [(number, name, written_by) for number, name, _, written_by in found]
    return _Source(fields, PRESENT_ROWS, _parameters(lists), lists, sum(count for _, _, count, _ in found))


def _find_past(tag: str, revision: int) -> _Source:
    past = find_past(tag, AsOf(revision=revision))
    fields = {
        "database": _primary(database_identity()),
        "tag": tag,
        "tag_id": past.tag_id,
        "revision": revision,
        "changed": past.created,
        "version": past.version,
        "past_version": past.version,
        "status": None,
        "last_modified": None,
        "horizon": None,
    }
    found = sorted(past_lists(past), key=lambda one: one.payload_type)
    lists: list[tuple[int, str, int | None]] = [(item.id, item.payload_type, None) for item in found]
    values = _parameters(lists) | {"versions": [item.version for item in found]}
    return _Source(fields, PAST_ROWS, values, lists, 0)


def _primary(database: str | None) -> str:
    if database is None:
        raise UnusableError("the database is a standby; a tag is compiled from the primary")
    return database


def _parameters(lists: list[tuple[int, str, int | None]]) -> dict[str, Any]:
    return {"list_ids": [number for number, _, _ in lists], "payload_types": [name for _, name, _ in lists]}
