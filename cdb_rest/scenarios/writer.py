"""Writing a scenario into the database: all of it or nothing, streamed by COPY."""

import contextlib
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from operator import itemgetter

import psycopg2
from django.conf import settings
from django.db import connection
from django.db.backends.utils import CursorWrapper

from cdb_rest import named_sql
from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.domain.moment import Interval, Mode
from cdb_rest.domain.origin import Origin
from cdb_rest.domain.status import Status
from cdb_rest.models import ChangeAction, GlobalTag, PayloadList, PayloadType
from cdb_rest.scenarios.ahead import made_ahead
from cdb_rest.scenarios.definitions import Scenario, payload_type_names
from cdb_rest.scenarios.generator import Row, rows_of_type
from cdb_rest.services.global_tags import add_global_tag, clone_global_tag, delete_global_tag
from cdb_rest.services.payload_lists import create_lists
from cdb_rest.services.transactions import write as one_transaction

COPY = named_sql.load("copy_payload_iovs")
REFRESH = named_sql.load("refresh_after_seeding")
SEEDER = Origin("seed_scenario")
# Rows that are turned into text at once, and how many such pieces may wait for the database.
ROWS_PER_PIECE = 5000
PIECES_AHEAD = 8


@one_transaction
def write(
    scenario: Scenario, *, tag: str, layout: str, seed: int, progress: Callable[[int], object], replace: bool = False
) -> GlobalTag:
    """Create the tag `tag` with the rows of a scenario; `progress` is told of each number of rows that went in.

    With `replace`, a tag of that name goes first. Raises `NameTakenError` if it exists, or whatever keeps it from going.
    """
    if replace:
        _delete(tag)
    created, changes = add_global_tag(
        name=tag, status=Status.UNLOCKED, author=SEEDER.actor, description=scenario.meaning
    )
    # The rows themselves follow from these, and are left out of the log.
    changes.of_tag(created.id).after.facts["scenario"] = {"name": scenario.name, "layout": layout, "seed": seed}
    kinds = [PayloadType.objects.get_or_create(name=name)[0] for name in payload_type_names(scenario.payload_types)]
    lists = create_lists([(kind, created) for kind in kinds])
    for payload_list in lists:
        changes.add_list(payload_list)
    with made_ahead(_pieces(scenario, lists, layout, seed), PIECES_AHEAD) as pieces, connection.cursor() as cursor:
        # One COPY for each list: at its end the database checks and counts what came, and a whole tag would be much at once.
        for _, pieces_of_list in groupby(pieces, key=itemgetter(0)):
            _CopyText(pieces_of_list, progress).copy_to(cursor)
    changes.record(ChangeAction.SEED, SEEDER)
    return created


@one_transaction
def write_clone(source: str, target: str, *, replace: bool = False) -> GlobalTag:
    """Clone a tag; with `replace`, a tag that has the clone's name goes first. Raises what either raises."""
    if replace:
        _delete(target)
    return clone_global_tag(source=source, target=target, origin=SEEDER)


def _delete(tag: str) -> None:
    with contextlib.suppress(GlobalTagNotFoundError):
        delete_global_tag(name=tag, origin=SEEDER)


def refresh_statistics() -> None:
    """Let the planner know the new rows and the index-only scans trust them; needs to be outside of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(REFRESH)


def _pieces(scenario: Scenario, lists: list[PayloadList], layout: str, seed: int) -> Iterator[tuple[int, str, int]]:
    """The rows of each list as text for COPY: the list's id, some rows, their number.

    The newest come first, which is the order of the lookup's index: its pages then fill one after the other.
    """
    mode = Mode(settings.CDB_IOV_MODE)
    for payload_list in lists:
        newest_first = reversed([*rows_of_type(scenario, payload_list.payload_type.name, layout=layout, seed=seed)])
        while some := list(islice(newest_first, ROWS_PER_PIECE)):
            yield payload_list.id, "".join(_line(row, payload_list.id, mode) for row in some), len(some)


def _line(row: Row, list_id: int, mode: Mode) -> str:
    end = (
        row.end if mode is Mode.CONTINUOUS else Interval.from_wire(row.start, row.end, Mode.CONTINUOUS).on_wire(mode)[1]
    )
    return (
        f"{row.payload_url}\t{row.checksum}\t{row.size}\t{row.start.major}\t{row.start.minor}"
        f"\t{end.major}\t{end.minor}\t{row.revision}\t{list_id}\n"
    )


class _CopyText:
    """The file that COPY reads from: a piece at a time, whatever size it asks for at most."""

    def __init__(self, pieces: Iterator[tuple[int, str, int]], progress: Callable[[int], object]) -> None:
        self._pieces = pieces
        self._progress = progress
        self._failure: BaseException | None = None

    def copy_to(self, cursor: CursorWrapper) -> None:
        """Run the COPY; what goes wrong in the reading is raised as it is, not as the driver's complaint about it."""
        try:
            cursor.copy_expert(COPY, self)
        except psycopg2.Error:
            if self._failure is not None:
                raise self._failure from None
            raise

    def read(self, _: int) -> str:
        try:
            _, text, count = next(self._pieces, (0, "", 0))
            self._progress(count)
        except BaseException as failure:
            self._failure = failure
            raise
        return text
