"""Writing a scenario into the database: all of it or nothing, streamed by COPY."""

from collections.abc import Callable, Iterator
from itertools import islice

from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.origin import Origin
from cdb_rest.domain.status import Status
from cdb_rest.models import ChangeAction, GlobalTag, PayloadType
from cdb_rest.scenarios.definitions import Scenario
from cdb_rest.scenarios.generator import Row, rows
from cdb_rest.services.global_tags import add_global_tag
from cdb_rest.services.payload_lists import create_lists
from cdb_rest.services.transactions import write as one_transaction

COPY = named_sql.load("copy_payload_iovs")
REFRESH = named_sql.load("refresh_after_seeding")
# Rows that are turned into text at once.
ROWS_PER_PIECE = 2000


@one_transaction
def write(scenario: Scenario, *, tag: str, layout: str, seed: int, progress: Callable[[int], None]) -> GlobalTag:
    """Create the tag `tag` with the rows of a scenario; `progress` is told of each number of rows that went in.

    Raises `NameTakenError` if the tag exists.
    """
    created, changes = add_global_tag(
        name=tag, status=Status.UNLOCKED, author="seed_scenario", description=scenario.meaning
    )
    # The rows themselves follow from these, and are left out of the log.
    changes.of_tag(created.id).after.facts["scenario"] = {"name": scenario.name, "layout": layout, "seed": seed}
    for payload_type, type_rows in rows(scenario, layout=layout, seed=seed):
        kind, _ = PayloadType.objects.get_or_create(name=payload_type)
        [payload_list] = create_lists([(kind, created)])
        changes.add_list(payload_list)
        with connection.cursor() as cursor:
            cursor.copy_expert(COPY, _CopyText(_lines(payload_list.id, type_rows, progress)))
    changes.record(ChangeAction.SEED, Origin("seed_scenario"))
    return created


def refresh_statistics() -> None:
    """Let the planner know the new rows and the index-only scans trust them; needs to be outside of a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(REFRESH)


def _lines(list_id: int, type_rows: Iterator[Row], progress: Callable[[int], None]) -> Iterator[str]:
    while piece := list(islice(type_rows, ROWS_PER_PIECE)):
        yield "".join(
            f"{row.payload_url}\t{row.checksum}\t{row.size}\t{row.start.major}\t{row.start.minor}\t{row.end.major}"
            f"\t{row.end.minor}\t{row.revision}\t{list_id}\n"
            for row in piece
        )
        progress(len(piece))


class _CopyText:
    """The file that COPY reads from: it takes whole pieces, whatever size it asks for at most."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._rest = ""

    def read(self, size: int) -> str:
        if not self._rest:
            self._rest = next(self._pieces, "")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
