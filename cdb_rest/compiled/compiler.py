"""Compiling: from the payload lists of a global tag in PostgreSQL to a pack of those lists that no other pack has."""

import time
from collections.abc import Callable, Collection

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.compiled.pack import Pack, UnusableError, new_file
from cdb_rest.compiled.state import TagState, read_state
from cdb_rest.compiled.tag import CompiledTag
from cdb_rest.compiled.writer import Writer
from cdb_rest.connections.snapshot import snapshot
from cdb_rest.rules.errors import GlobalTagNotFoundError

ROWS = named_sql.load("compile_rows")
SETTINGS = named_sql.load("export_settings")

# A tag whose lists are in more packs is slower. Then the largest half of these packs stays, and all other lists are compiled
# again, into one pack.
MOST_PACKS = 8
# More take more memory.
ROWS_AT_ONCE = 20_000


def compile_tag(
    tag: str,
    revision: int | None = None,
    *,
    packs: Collection[Pack] = (),
    progress: Callable[[int], None] = lambda rows: None,
) -> tuple[TagState, int, int, int]:
    """Compile those lists of the present state of a tag, or of a past revision, that are not in one of the packs.

    Returns the state; and of the new pack the numbers of lists and rows and the size in bytes, 0 without one. `progress` is
    called with the number of rows until now; it may sleep. Raises `GlobalTagNotFoundError`, `RevisionNotFoundError`,
    `RevisionPrunedError`, `UnusableError`, `OSError`, for example if the disk is full, or `django.db.Error`.
    """
    with snapshot():
        state = read_state(tag, revision)
        if state is None:
            raise GlobalTagNotFoundError(tag)
        compiled = CompiledTag(state, packs)
        if len(compiled.parts) + bool(compiled.missing) > MOST_PACKS:
            compiled = CompiledTag(state, [part.pack for part in compiled.parts[: MOST_PACKS // 2]])
        keys = [state.keys[rank] for rank in compiled.missing]
        if not keys:
            return state, 0, 0, 0
        if state.database is None:
            raise UnusableError("the database is a standby; lists are compiled from the primary")
        with connection.cursor() as cursor:
            # No statement timeout: `progress` may sleep.
            cursor.execute(SETTINGS, {"milliseconds": "0"})
        with new_file() as file:
            writer = Writer(file)
            for key in keys:
                with connection.chunked_cursor() as cursor:
                    cursor.execute(ROWS, key._asdict())
                    while rows := cursor.fetchmany(ROWS_AT_ONCE):
                        writer.append(rows)
                        progress(writer.rows)
                writer.end_list()
            writer.finish(database=state.database, tag=tag, revision=state.revision, compiled=time.time(), lists=keys)
    return state, len(keys), writer.rows, writer.size
