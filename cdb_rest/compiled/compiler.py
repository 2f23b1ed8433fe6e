"""Compiling: from the payload lists of a global tag in PostgreSQL to a pack of those lists that no other pack has."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.compiled.pack import Pack, UnusableError, new_file
from cdb_rest.compiled.state import StateList, TagState, read_state
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.compiled.writer import Writer
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.rules.errors import GlobalTagNotFoundError

ROWS = named_sql.load("compile_rows")
SETTINGS = named_sql.load("export_settings")

# A tag whose lists are in more packs is slower. Then the largest half of these packs stays, and all other lists are compiled
# again, into one pack.
MOST_PACKS = 8

# The numbers of rows that have been read, and of all rows (0: unknown). It may sleep.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Compilation:
    """The state of the tag that was compiled; of the new pack the numbers of lists and rows and the size in bytes, or 0."""

    state: TagState
    lists: int = 0
    rows: int = 0
    size: int = 0


def compile_tag(
    tag: str,
    revision: int | None = None,
    *,
    packs: Collection[Pack] = (),
    progress: Progress = lambda done, total: None,
) -> Compilation:
    """Compile those lists of the present state of a tag, or of a past revision, that are not in one of the packs.

    Raises `GlobalTagNotFoundError`, `RevisionNotFoundError`, `RevisionPrunedError`, `UnusableError`, `OSError`, for example if
    the disk is full, or `django.db.Error`.
    """
    with snapshot():
        state = read_state(tag, revision)
        if state is None:
            raise GlobalTagNotFoundError(tag)
        lists = _lists_to_compile(state, packs)
        if not lists:
            return Compilation(state)
        if state.database is None:
            raise UnusableError("the database is a standby; a tag is compiled from the primary")
        total = sum(item.rows for item in lists)
        with new_file() as file, connection.cursor() as cursor:
            writer = Writer(file, lambda done: progress(done, total))
            # No statement timeout: the progress may sleep.
            cursor.execute(SETTINGS, {"milliseconds": "0"})
            for item in lists:
                values = {**item.key._asdict(), "rows_version": item.rows_version}
                statement = cursor.cursor.mogrify(ROWS, values).decode()
                cursor.copy_expert(f"COPY ({statement}) TO STDOUT (FORMAT binary)", writer)
                writer.end_list()
            keys = [item.key for item in lists]
            writer.finish(database=state.database, tag=tag, revision=state.revision, compiled=time.time(), lists=keys)
    return Compilation(state, len(lists), writer.rows, writer.size)


def _lists_to_compile(state: TagState, packs: Collection[Pack]) -> list[StateList]:
    compiled = CompiledTag(state, packs)
    if len(compiled.parts) + bool(compiled.missing) > MOST_PACKS:
        compiled = CompiledTag(state, [part.pack for part in compiled.parts[: MOST_PACKS // 2]])
    return compiled.missing
