"""The faults that nopayloaddb lets into a database, each in a tag of its own, and the kind by which a report names it."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from tests.adopt.old_database import (
    MAX,
    VARIANTS,
    OldDatabase,
    combined,
    major_twice,
    rounded,
    scaled,
)


class Fault(NamedTuple):
    """A way in which nopayloaddb gets a fault of a kind.

    `plant` makes it in a list of an unlocked tag that is called like the fault, and returns what is at fault: ids of IOVs or
    lists, or names. The list has a faultless row [(1, 0), (2, 0)). `since` is the first variant that can hold the fault.
    """

    kind: str
    plant: Callable[[OldDatabase, int], Collection[Any]]
    since: str


FAULTS: dict[str, Fault] = {}

# A large major number, as of a time in seconds: `comb_iov` was rounded for it.
LARGE = 1720000000


def _fault(kind: str, since: str = "V1") -> Callable[[Any], Any]:
    def register(plant: Any) -> Any:
        FAULTS[plant.__name__] = Fault(kind, plant, since)
        return plant

    return register


def plant(database: OldDatabase, name: str) -> Collection[Any]:
    """What is at fault in the tag `name`, which is new."""
    payload_list = database.payload_list("Gain", database.tag(name))
    database.iov(payload_list, (1, 0), (2, 0))
    return FAULTS[name].plant(database, payload_list)


def faults_of(variant: str) -> list[str]:
    """The names of the faults that a database of a variant can have, `orphan` last: it drops a foreign key."""
    return [name for name, fault in FAULTS.items() if VARIANTS.index(fault.since) <= VARIANTS.index(variant)]


@_fault("negative")
def negative_start(database, payload_list):
    return [database.iov(payload_list, (0, -5), (0, 5)), database.iov(payload_list, (-1, 7), (0, -5))]


@_fault("negative", "V4")
def negative_end(database, payload_list):
    # A row that ends before it starts as well.
    return [database.iov(payload_list, (3, 0), (-1, -1))]


@_fault("end_before_start", "V4")
def end_before_start(database, payload_list):
    return [database.iov(payload_list, (4, 10), (4, 9)), database.iov(payload_list, (5, 0), (4, MAX))]


@_fault("end_before_start", "V4")
def end_of_a_migration(database, payload_list):
    """The columns of the ends were added with the default 0."""
    return [database.iov(payload_list, (6, 0), (0, 0))]


@_fault("empty", "V4")
def empty(database, payload_list):
    """No fault in discrete mode, where the row is valid for one moment."""
    return [database.iov(payload_list, (7, 3), (7, 3))]


@_fault("equal_starts")
def equal_starts(database, payload_list):
    """Two requests at the same time."""
    return [database.iov(payload_list, (8, 0), (9, 0), url=url) for url in ("first.root", "second.root")]


@_fault("equal_starts", "V4")
def equal_starts_of_an_attachment(database, payload_list):
    """A row with the start of an existing row cut the existing row to nothing, so that this is empty as well."""
    return [database.iov(payload_list, (8, 0), end, url=f"{end[0]}.root") for end in ((8, 0), (9, 0))]


@_fault("equal_starts")
def equal_starts_of_bulk(database, payload_list):
    """The same bulk request twice. Such rows are always open and have no checksum, and often overlap."""
    starts = [(20, 0), (30, 0)] * 2
    return [database.iov(payload_list, start, url="bulk.root", checksum="") for start in starts]


@_fault("overlap", "V4")
def overlap(database, payload_list):
    ids = [database.iov(payload_list, (10, start), (10, end)) for start, end in ((10, 20), (15, 30))]
    return ids[:1]


@_fault("overlap")
def overlap_of_open_rows(database, payload_list):
    """The normal state of a list that online processes write to."""
    ids = [database.iov(payload_list, (start, 0)) for start in (30, 40, 50)]
    return ids[:2]


@_fault("null_comb_iov", "V7")
def null_comb_iov(database, payload_list):
    return [database.iov(payload_list, (11, 0), (12, 0), comb=None)]


@_fault("wrong_comb_iov", "V7")
def comb_iov_of_another_scale(database, payload_list):
    # The second one lies in the next major.
    return [database.iov(payload_list, (12, minor), (14, 0), comb=scaled) for minor in (20, MAX)]


@_fault("wrong_comb_iov", "V7")
def comb_iov_of_the_major_twice(database, payload_list):
    # The row of major 0 has the value 0.
    return [database.iov(payload_list, (major, 30), (major, 40), comb=major_twice) for major in (0, 15)]


@_fault("wrong_comb_iov", "V7")
def comb_iov_rounded(database, payload_list):
    # Stored as …020, and as …000.
    return [database.iov(payload_list, (LARGE, minor), (LARGE, minor + 9), comb=rounded) for minor in (15, 1)]


@_fault("wrong_comb_iov", "V7")
def comb_iov_of_another_row(database, payload_list):
    """The later part of a row that was split, and a successor whose start was moved from (19, 5) to (19, 8)."""
    third = database.iov(payload_list, (17, 50), (18, 0), comb=combined(17, 0))
    moved = database.iov(payload_list, (19, 8), (20, 0), comb=combined(19, 5))
    for start, end in (((17, 0), (17, 20)), ((17, 20), (17, 50)), ((19, 0), (19, 8))):
        database.iov(payload_list, start, end)
    return [third, moved]


@_fault("open_at_major", "V4")
def open_at_major(database, payload_list):
    """Two spellings of "open" in continuous mode; in discrete mode the end of the run."""
    return [database.iov(payload_list, (0, 100), (0, MAX)), database.iov(payload_list, (21, 0), (21, MAX))]


@_fault("bad_revision", "V9")
def bad_revision(database, payload_list):
    extras = ("rev. 5", "-1", "1.5", "12345678901234567890")
    return [database.iov(payload_list, (40 + i, 0), (41 + i, 0), extra=extra) for i, extra in enumerate(extras)]


@_fault("two_lists")
def two_lists(database, payload_list):
    tag = database.execute("SELECT global_tag_id FROM {PayloadList} WHERE id = %s", payload_list)[0][0]
    other = database.payload_list("Gain", tag, updated="2024-02-01T00:00:00Z")
    database.iov(other, (1, 0), (2, 0), url="other.root")
    return [payload_list, other]


@_fault("unknown_status")
def unknown_status(database, payload_list):
    names = ["Locked", "test", "x/y"]
    for name in names:
        database.payload_list("Noise", database.tag(f"status {name.lower().replace('/', '-')}", name))
    return names


@_fault("frozen_tag")
def frozen_tag(database, payload_list):
    """A frozen tag could still be changed."""
    return [database.tag("frozen", "frozen")]


@_fault("bad_name")
def bad_names(database, payload_list):
    names = ["a/b", "tab\there", "line\nbreak", ".", ".."]
    for name in names:
        database.tag(name)
    database.payload_type("x/y")
    database.payload_list("Noise", None, name="n" * 101)
    return [*names, "x/y", "n" * 101]


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
    name = "SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = '{PayloadIOV}'::regclass"
    for (constraint,) in database.execute(name):
        database.execute(f'ALTER TABLE {{PayloadIOV}} DROP CONSTRAINT "{constraint}"')
    deleted = database.payload_list("Noise", None)
    rows = [database.iov(deleted, (25, 0), (26, 0))]
    database.execute("DELETE FROM {PayloadList} WHERE id = %s", deleted)
    return rows
