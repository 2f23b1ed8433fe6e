"""The writer of scenarios: inserts all rows of a scenario, or none, by COPY."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeVar

import psycopg2
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

from cdb_rest import named_sql
from cdb_rest.models import ChangeAction, GlobalTag, PayloadList, PayloadType
from cdb_rest.rules.access import Origin
from cdb_rest.rules.errors import GlobalTagNotFoundError
from cdb_rest.rules.moment import Interval, Mode
from cdb_rest.rules.status import Status
from cdb_rest.scenarios.definitions import Scenario, payload_type_names
from cdb_rest.scenarios.generator import Row, rows_of_type
from cdb_rest.writes.global_tags import add_global_tag, clone_global_tag, delete_global_tag
from cdb_rest.writes.payload_lists import create_lists
from cdb_rest.writes.transactions import write as one_transaction

Item = TypeVar("Item")


@contextlib.contextmanager
def prefetch(items: Iterator[Item], depth: int) -> Iterator[Iterator[Item]]:
    """A context manager that yields an iterator over the same items, of which a thread produces up to `depth` in advance.

    No item may be None. The new iterator raises an error of `items` after the items before it, and must not be used after
    the block, whose end waits for the item that is being produced. `items` must not use the database, because nothing
    would close the thread's connection.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    ahead = deque(pool.submit(next, items, None) for _ in range(depth))

    def produced() -> Iterator[Item]:
        while (item := ahead.popleft().result()) is not None:
            ahead.append(pool.submit(next, items, None))
            yield item

    try:
        yield produced()
    finally:
        pool.shutdown(cancel_futures=True)


COPY = named_sql.load("copy_payload_iovs")
REFRESH = named_sql.load("refresh_after_seeding")
SEEDER = Origin("seed_scenario")
# Rows of a chunk of text for COPY, and the maximum number of chunks that wait for the database.
ROWS_PER_CHUNK = 5000
CHUNKS_AHEAD = 8


@one_transaction
def write(
    scenario: Scenario, *, tag: str, layout: str, seed: int, progress: Callable[[int], object], replace: bool = False
) -> GlobalTag:
    """Create an unlocked global tag named `tag` with the payload IOVs of a scenario. Missing payload types are created.

    `layout` is a key of `LAYOUTS`. The same scenario, layout and seed give the same payload IOVs. `progress` is called
    in this thread before each chunk is sent, with the number of its rows, which may be 0. If the write is retried after
    a conflict, the same rows are reported again.

    With `replace`, an existing tag with this name is deleted in the same transaction. Raises `NameTakenError`, or with
    `replace` also `TagLockedError` or `TagFrozenError`.

    The counts and the revision of the returned object are not current; `refresh_from_db` reads them.
    """
    if replace:
        _delete(tag)
    created, changes = add_global_tag(
        name=tag, status=Status.UNLOCKED, author=SEEDER.actor, description=scenario.description
    )
    changes.of_tag(created.id).source = {"scenario": {"name": scenario.name, "layout": layout, "seed": seed}}
    types = [PayloadType.objects.get_or_create(name=name)[0] for name in payload_type_names(scenario.payload_types)]
    lists = create_lists([(payload_type, created) for payload_type in types])
    with prefetch(_chunks(scenario, lists, layout, seed), CHUNKS_AHEAD) as chunks, connection.cursor() as cursor:
        # One COPY for each list, because the triggers at the end of a COPY process all of its rows at once.
        for _, chunks_of_list in groupby(chunks, key=itemgetter(0)):
            _CopyText(chunks_of_list, progress).copy_to(cursor)
    # The lists with their numbers of IOVs.
    for payload_list in PayloadList.objects.filter(global_tag=created):
        changes.attach(payload_list, created.id)
        changes.of_list(payload_list)
    changes.record(ChangeAction.SEED, SEEDER)
    return created


@one_transaction
def write_clone(source: str, target: str, *, replace: bool = False) -> GlobalTag:
    """Clone the tag `source` as `target`. With `replace`, an existing tag `target` is deleted in the same transaction.

    Raises `GlobalTagNotFoundError` if `source` does not exist, `NameTakenError`, or with `replace` also
    `TagLockedError` or `TagFrozenError`.
    """
    if replace:
        _delete(target)
    return clone_global_tag(source=source, target=target, origin=SEEDER)


def _delete(tag: str) -> None:
    with contextlib.suppress(GlobalTagNotFoundError):
        # The data of a scenario can be generated again, so their past is not kept.
        delete_global_tag(name=tag, keep_history=False, origin=SEEDER)


def refresh_statistics() -> None:
    """Vacuum and analyze the tables of tags, payload lists, payload types and payload IOVs.

    This updates the planner's statistics and permits index-only scans. The caller must not be inside a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(REFRESH)


def _chunks(scenario: Scenario, lists: list[PayloadList], layout: str, seed: int) -> Iterator[tuple[int, str, int]]:
    """Yield the rows of each list as chunks for COPY: the id of the list, the text, and the number of rows in the text.

    The rows of a list are ordered by descending start, as in the lookup's index. So COPY fills the pages of the index
    one after the other.

    `prefetch` runs this in a thread that must not use the database. The lists must have their payload types loaded.
    """
    mode = Mode(settings.CDB_IOV_MODE)
    for payload_list in lists:
        newest_first = reversed([*rows_of_type(scenario, payload_list.payload_type.name, layout=layout, seed=seed)])
        while rows := list(islice(newest_first, ROWS_PER_CHUNK)):
            yield payload_list.id, "".join(_line(row, payload_list.id, mode) for row in rows), len(rows)


def _line(row: Row, list_id: int, mode: Mode) -> str:
    end = (
        row.end if mode is Mode.CONTINUOUS else Interval.from_wire(row.start, row.end, Mode.CONTINUOUS).on_wire(mode)[1]
    )
    return (
        f"{row.payload_url}\t{row.checksum}\t{row.size}\t{row.start.major}\t{row.start.minor}"
        f"\t{end.major}\t{end.minor}\t{row.revision}\t{list_id}\t1\n"
    )


class _CopyText:
    """The file that COPY reads. Each read returns one chunk; the requested size is ignored."""

    def __init__(self, chunks: Iterator[tuple[int, str, int]], progress: Callable[[int], object]) -> None:
        self._chunks = chunks
        self._progress = progress
        self._failure: BaseException | None = None

    def copy_to(self, cursor: CursorWrapper) -> None:
        """Run COPY. Raises the original error of the chunks' iterator or of `progress`, not the driver's error."""
        try:
            cursor.copy_expert(COPY, self)
        except psycopg2.Error:
            if self._failure is not None:
                raise self._failure from None
            raise

    def read(self, _: int) -> str:
        try:
            _, text, count = next(self._chunks, (0, "", 0))
            self._progress(count)
        except BaseException as failure:
            self._failure = failure
            raise
        return text
