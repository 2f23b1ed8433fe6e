"""A model of nopayloaddb's data in plain Python: what lookups find, and what the decisions of an adoption do to the rows."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple

from tests.adopt.old_database import EXACT, MAX, OPEN_END, OldDatabase

Moment = tuple[int, int]


class Tag(NamedTuple):
    id: int
    name: str
    status: str


class PayloadList(NamedTuple):
    id: int
    name: str
    payload_type: str
    tag: int | None
    updated: datetime


class Row(NamedTuple):
    """An IOV. What its variant does not have is as after an adoption, and `comb_iov` is right then."""

    id: int
    payload_list: int | None
    start: Moment
    end: Moment
    payload_url: str
    checksum: str
    size: int
    extra: str | None
    comb_iov: Decimal | None


# The columns of IOVs that some variants do not have, and what is adopted in their place.
LACKING = {
    "major_iov_end": str(MAX),
    "minor_iov_end": str(MAX),
    "checksum": "''",
    "size": "0",
    "extra": "''",
    "comb_iov": "(major_iov + minor_iov * 1e-19::numeric)",
}


class Data(NamedTuple):
    """All tags, lists and IOVs. What refers to a tag or list that does not exist is detached."""

    tags: list[Tag]
    lists: list[PayloadList]
    rows: list[Row]

    @classmethod
    def read(cls, database: OldDatabase) -> "Data":
        """What is in a database."""
        tags = "SELECT tag.id, tag.name, status.name FROM {GlobalTag} tag LEFT JOIN {GlobalTagStatus} status"
        lists = """SELECT list.id, list.name, type.name, tag.id, list.updated FROM {PayloadList} list
            LEFT JOIN {GlobalTag} tag ON tag.id = list.global_tag_id LEFT JOIN {PayloadType} type"""
        columns = [name if name in database.columns["PayloadIOV"] else LACKING[name] for name in LACKING]
        rows = f"""SELECT iov.id, list.id, payload_url, major_iov, minor_iov, {", ".join(columns)} FROM {{PayloadIOV}} iov
            LEFT JOIN {{PayloadList}} list ON list.id = iov.payload_list_id ORDER BY iov.id"""  # noqa: S608 -- names and constants
        status_key, type_key = database.key("GlobalTagStatus"), database.key("PayloadType")
        return cls(
            [
                Tag(*values)
                for values in database.execute(f"{tags} ON status.{status_key} = tag.status_id ORDER BY tag.id")
            ],
            [
                PayloadList(*values)
                for values in database.execute(f"{lists} ON type.{type_key} = list.payload_type_id ORDER BY list.id")
            ],
            [
                Row(row, payload_list, start, end, url, checksum, max(size or 0, 0), extra or None, comb_iov)
                for row, payload_list, url, *numbers, checksum, size, extra, comb_iov in database.execute(rows)
                for start, end in [(tuple(numbers[:2]), tuple(numbers[2:]))]
            ],
        )

    def rows_of(self, payload_list: int) -> list[Row]:
        """The IOVs of a list."""
        return [row for row in self.rows if row.payload_list == payload_list]


def answer(rows: Iterable[Row], moment: Moment) -> Row | None:
    """What a lookup finds with the right `comb_iov`: the row with the latest start, of several the newest. Ends do not count."""
    return max((row for row in rows if row.start <= moment), key=lambda row: (row.start, row.id), default=None)


def change_moments(rows: Collection[Row]) -> list[Moment]:
    """All moments at which an answer may change, the last moments before them, the first moment and the last."""
    changes = {moment for row in rows for moment in (row.start, row.end, *_first_found(row.comb_iov))}
    before = {(major, minor - 1) if minor else (major - 1, MAX) for major, minor in changes}
    return sorted(moment for moment in {(0, 0), OPEN_END} | changes | before if min(moment) >= 0)


def _first_found(comb_iov: Decimal | None) -> Iterator[Moment]:
    """The first moment at which the old lookup finds a row with this `comb_iov`."""
    if comb_iov is not None and comb_iov >= 0:
        major, minor = divmod(int(comb_iov.scaleb(19, EXACT)), 10**19)
        yield (major, minor) if minor <= MAX else (major + 1, 0)


# What each option of an adoption may say about a kind of fault. Those of single rows are in the order of their application.
ROW_CHOICES = {
    "negative": ("detach", "refuse"),
    "end_before_start": ("open", "detach", "refuse"),
    "empty": ("detach", "refuse"),
    "null_comb_iov": ("attach", "detach"),
    "open_at_major": ("keep", "open"),
    "bad_revision": ("drop", "refuse"),
}
CHOICES = ROW_CHOICES | {
    "equal_starts": ("newest", "refuse"),
    "two_lists": ("newest", "refuse"),
    "detached": ("keep", "drop"),
}


class RefusedError(Exception):
    """The data have a fault that a decision refuses."""


def faults(row: Row, mode: str) -> Iterator[str]:
    """The faults that a row has by itself, in the order of ROW_CHOICES."""
    if min(*row.start, *row.end) < 0:
        yield "negative"
    elif row.end < row.start:
        yield "end_before_start"
    elif mode == "continuous" and row.end == row.start != OPEN_END:
        yield "empty"
    if row.comb_iov is None:
        yield "null_comb_iov"
    if mode == "continuous" and row.end == (row.start[0], MAX) != OPEN_END:
        yield "open_at_major"
    if row.extra and not (row.extra.isascii() and row.extra.isdigit() and len(row.extra) <= 19):
        yield "bad_revision"


def decided(data: Data, mode: str, decisions: dict[str, str]) -> Data:
    """The data after decisions, which have one of the CHOICES for each of their keys. Raises `RefusedError`."""

    def choose(kind: str) -> str:
        if decisions[kind] == "refuse":
            raise RefusedError(kind)
        return decisions[kind]

    rows: dict[int, Row] = {}
    opened: set[int] = set()
    attached: dict[tuple[int, Moment], int] = {}
    for row in sorted(data.rows):
        for kind in faults(row, mode):
            # An IOV without a list may have any numbers, but its revision is a number as well.
            is_allowed = row.payload_list is None and kind != "bad_revision"
            choice = decisions[kind] if is_allowed else choose(kind)
            if choice == "detach":
                row = row._replace(payload_list=None)
            elif choice == "open":
                opened.add(row.id)
            elif choice == "drop":
                row = row._replace(extra=None)
        if row.payload_list is not None:
            older = attached.get((row.payload_list, row.start))
            if older is not None and choose("equal_starts"):
                rows[older] = rows[older]._replace(payload_list=None)
            attached[row.payload_list, row.start] = row.id
        rows[row.id] = row

    # Detached IOVs keep their ends.
    for opened_row in opened:
        if rows[opened_row].payload_list is not None:
            rows[opened_row] = rows[opened_row]._replace(end=OPEN_END)

    lists = []
    by_type = sorted(data.lists, key=lambda one: (one.tag or 0, one.payload_type, one.updated, one.id))
    for (tag, _), same in groupby(by_type, key=lambda one: (one.tag, one.payload_type)):
        *olders, newest = same
        if olders and tag is not None and choose("two_lists"):
            olders = [one._replace(tag=None) for one in olders]
        lists += [*olders, newest]

    if decisions["detached"] == "drop":
        lists = [one for one in lists if one.tag is not None]
        kept = {one.id for one in lists}
        rows = {row.id: row for row in rows.values() if row.payload_list in kept}
    return Data(data.tags, lists, list(rows.values()))
