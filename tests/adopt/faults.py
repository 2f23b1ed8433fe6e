"""The faults that nopayloaddb lets into a database, each in a tag of its own, and the kind by which a report names it."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from tests.adopt.old_database import ALTERATIONS, MAX, VARIANTS, OldDatabase, combined, major_twice, rounded, scaled

# A large major number, as of a time in seconds: `comb_iov` was rounded for it.
LARGE = 1720000000

Rows = Collection[tuple[Any, ...]]


class Fault(NamedTuple):
    """A way in which nopayloaddb gets a fault of a kind into a list, and the first variant that can have it.

    `rows` are the faulty IOVs of the list: start, end and, if it is not right, `comb_iov`. `others` are IOVs beside them. A fault
    that is not in IOVs of the list is planted by a function: it has the database and the list, and returns what is at fault.
    """

    kind: str
    since: str
    rows: Rows = ()
    others: Rows = ()
    function: Callable[[OldDatabase, int], list[Any]] | None = None


OPEN = (MAX, MAX)
FAULTS = {
    "negative_start": Fault("negative", "V1", [((0, -5), (0, 5)), ((-1, 7), (0, 0))]),
    # A row that ends before it starts as well.
    "negative_end": Fault("negative", "V4", [((3, 0), (-1, -1))]),
    "end_before_start": Fault("end_before_start", "V4", [((4, 10), (4, 9)), ((5, 0), (4, MAX))]),
    # The columns of the ends were added with 0 in old rows.
    "end_of_a_migration": Fault("end_before_start", "V4", [((6, 0), (0, 0))]),
    # No fault in discrete mode, where the row is valid for one moment.
    "empty": Fault("empty", "V4", [((7, 3), (7, 3))]),
    # Two requests at the same time.
    "equal_starts": Fault("equal_starts", "V1", [((8, 0), (9, 0)), ((8, 0), (9, 0))]),
    # A new row with the start of an existing row cut the existing row to nothing, so that this is empty as well.
    "equal_starts_of_an_attachment": Fault("equal_starts", "V4", [((8, 0), (8, 0)), ((8, 0), (9, 0))]),
    # The same bulk request twice: its rows are always open.
    "equal_starts_of_bulk": Fault("equal_starts", "V1", [((20, 0), OPEN), ((30, 0), OPEN)] * 2),
    "overlap": Fault("overlap", "V4", [((10, 10), (10, 20))], [((10, 15), (10, 30))]),
    # The normal state of a list that online processes write to.
    "overlap_of_open_rows": Fault("overlap", "V1", [((30, 0), OPEN), ((40, 0), OPEN)], [((50, 0), OPEN)]),
    "null_comb_iov": Fault("null_comb_iov", "V7", [((11, 0), (12, 0), None)]),
    # The second row counts as one of the next major.
    "comb_iov_of_another_scale": Fault(
        "wrong_comb_iov", "V7", [((12, 20), (12, 30), scaled), ((13, MAX), (15, 0), scaled)]
    ),
    # With major 0 the value is 0: the row vanishes from its own interval.
    "comb_iov_of_the_major_twice": Fault(
        "wrong_comb_iov", "V7", [((0, 30), (0, 40), major_twice), ((15, 30), (15, 40), major_twice)]
    ),
    # The row is not found at its own start, or one moment before it.
    "comb_iov_rounded": Fault(
        "wrong_comb_iov", "V7", [((LARGE, 15), (LARGE, 20), rounded), ((LARGE, 1), (LARGE, 15), rounded)]
    ),
    # The last part of a row that was split, which has the value of the first part.
    "comb_iov_of_a_split": Fault(
        "wrong_comb_iov", "V7", [((17, 50), (18, 0), combined(17, 0))], [((17, 0), (17, 20)), ((17, 20), (17, 50))]
    ),
    # The start of a successor was moved from (19, 5) to (19, 8).
    "comb_iov_of_a_moved_start": Fault(
        "wrong_comb_iov", "V7", [((19, 8), (20, 0), combined(19, 5))], [((19, 0), (19, 8))]
    ),
    # Two spellings of "open" in continuous mode; in discrete mode the end of the run.
    "open_at_major": Fault("open_at_major", "V4", [((0, 100), (0, MAX)), ((21, 0), (21, MAX))]),
}


def _fault(kind: str, since: str = "V1") -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        FAULTS[function.__name__] = Fault(kind, since, function=function)
        return function

    return register


def plant(database: OldDatabase, name: str) -> Collection[Any]:
    """Plant a fault in a list of the new tag `name`, beside the right row [(1, 0), (2, 0)): ids of IOVs or lists, or names."""
    fault, payload_list = FAULTS[name], database.payload_list("Gain", database.tag(name))
    for row in ((1, 0), (2, 0)), *fault.others:
        database.iov(payload_list, *row)
    if fault.function:
        return fault.function(database, payload_list)
    return [
        database.iov(payload_list, *row[:2], url=f"{name}_{number}.root", comb=row[2] if row[2:] else combined)
        for number, row in enumerate(fault.rows)
    ]


def faults_of(variant: str) -> list[str]:
    """The names of the faults that a database of a variant can have, `orphan` last: it drops a foreign key."""
    return [name for name, fault in FAULTS.items() if VARIANTS.index(fault.since) <= VARIANTS.index(variant)]


@_fault("bad_revision", "V9")
def bad_revision(database, payload_list):
    extras = ("rev. 5", "-1", "1.5", "12345678901234567890")
    return [database.iov(payload_list, (40 + i, 0), (41 + i, 0), extra=extra) for i, extra in enumerate(extras)]


@_fault("two_lists")
def two_lists(database, payload_list):
    """Two requests at the same time."""
    tag = database.execute("SELECT global_tag_id FROM {PayloadList} WHERE id = %s", payload_list)[0][0]
    other = database.payload_list("Gain", tag, updated="2024-02-01T00:00:00Z")
    database.iov(other, (1, 0), (2, 0), url="other.root")
    return [payload_list, other]


@_fault("unknown_status")
def unknown_status(database, payload_list):
    names = ["Locked", "test", "x/y"]
    for number, name in enumerate(names):
        database.tag(f"unknown_status_{number}", name)
    return names


@_fault("frozen_tag")
def frozen_tag(database, payload_list):
    """A frozen tag could still be changed."""
    return [database.tag("frozen", "frozen")]


@_fault("bad_name")
def bad_names(database, payload_list):
    tags, payload_type, list_name = ["a/b", "tab\there", "line\nbreak", ".", ".."], "x/y", "n" * 101
    for name in tags:
        database.tag(name)
    tag = database.execute("SELECT global_tag_id FROM {PayloadList} WHERE id = %s", payload_list)[0][0]
    database.payload_list(payload_type, tag, name=list_name)
    return [*tags, payload_type, list_name]


@_fault("detached_iov", "V4")
def detached_iov(database, payload_list):
    return [database.iov(None, (23, 0), (24, 0))]


@_fault("detached_list")
def detached_list(database, payload_list):
    detached = database.payload_list("Noise")
    database.iov(detached, (1, 0), (2, 0))
    return [detached]


@_fault("orphan")
def orphan(database, payload_list):
    """A list was deleted by SQL in a database without the foreign key, as one that was restored by hand."""
    database.execute(ALTERATIONS["foreign key"])
    deleted = database.payload_list("Noise")
    rows = [database.iov(deleted, (25, 0), (26, 0))]
    database.execute("DELETE FROM {PayloadList} WHERE id = %s", deleted)
    return rows
