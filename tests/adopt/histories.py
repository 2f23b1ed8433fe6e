"""Random databases of nopayloaddb and random changes of them, as a strategy of hypothesis."""

from typing import Any

from hypothesis import strategies as st

from tests.adopt.model import CHOICES
from tests.adopt.old_database import MAX, OPEN_END, OldDatabase, combined, major_twice, rounded, scaled

# Few, so that starts are equal often. `comb_iov` is rounded for the large major numbers.
MOMENTS = [
    *((0, 0), (0, 1), (0, 5), (0, MAX), (1, 0), (1, 5), (2, 0)),
    *((10**9, 15), (1720000000, 1), (1720000000, 15), (MAX, 0), (MAX, MAX)),
]
TYPES = ("Gain", "Noise", "Beamspot")
STATUSES = ("unlocked", "locked", "frozen", "Locked", "test")

NUMBER = st.integers(0, 20)
MOMENT = st.sampled_from(MOMENTS)
START = st.sampled_from([*MOMENTS * 3, (0, -5), (-1, 0)])
# An end that does not depend on the start may be before it.
END = st.sampled_from([*["open", "next"] * 8, *MOMENTS, "empty", "major"])
COMB = st.sampled_from([*[combined] * 10, rounded, scaled, major_twice, "stale", None])
EXTRA = st.sampled_from([*[None] * 6, "", "7", "rev. 5"])
INSERT = st.tuples(
    st.just("insert"), st.fixed_dictionaries({"at": NUMBER, "start": START, "end": END, "comb": COMB, "extra": EXTRA})
)
OTHER = st.one_of(
    *(
        st.tuples(st.just(step), st.fixed_dictionaries({"at": NUMBER} | values))
        for step, values in {
            "insert_detached": {"start": MOMENT, "end": END, "comb": COMB},
            "detach": {},
            "delete": {},
            "change_end": {"end": END},
            "change_url": {"url": st.sampled_from(["other.root", "third.root"])},
            "add_list": {"payload_type": st.sampled_from(TYPES)},
            "detach_list": {},
            "move_list": {"to": NUMBER},
            "add_tag": {"status": st.sampled_from(STATUSES)},
            "change_status": {"status": st.sampled_from(STATUSES)},
            "delete_tag": {},
        }.items()
    )
)
# Two thirds of the steps of a history are new rows of lists, but few of its changes.
STEPS = st.integers(0, 2).flatmap(lambda number: INSERT if number else OTHER)
HISTORIES = st.lists(STEPS, min_size=20, max_size=60)
CHANGES = st.lists(INSERT | OTHER, min_size=1, max_size=10)

# Decisions by which every database can be adopted.
DECISIONS = st.fixed_dictionaries(
    {kind: st.sampled_from([choice for choice in choices if choice != "refuse"]) for kind, choices in CHOICES.items()}
)


def begin(database: OldDatabase) -> None:
    """Two tags with four lists, so that the steps of a history find something. All rows that were there are deleted."""
    database.empty()
    for name, status in (("first", "unlocked"), ("second", "locked")):
        tag = database.tag(name, status)
        for payload_type in TYPES[:2]:
            database.payload_list(payload_type, tag)


def play(database: OldDatabase, steps: list[tuple[str, dict[str, Any]]]) -> None:
    """Change a database step by step. A step that finds no row, or needs a column that the variant lacks, does nothing."""
    for step, values in steps:
        getattr(_Steps(database), step)(**values)


class _Steps:
    """The steps. `at` chooses one of the rows of a table. None of them changes `updated`, as SQL by hand does not."""

    def __init__(self, database: OldDatabase) -> None:
        self.database, self.execute = database, database.execute
        columns = database.columns["PayloadIOV"]
        self.may_detach = "NOT NULL" not in columns["payload_list_id"]
        self.has_ends = "major_iov_end" in columns

    def _pick(self, table: str, at: int, columns: str = "id") -> Any:
        rows = self.execute(f"SELECT {columns} FROM {{{table}}} ORDER BY id")  # noqa: S608 -- names of this module
        row = rows[at % len(rows)] if rows else (None,) * len(columns.split(","))
        return row if len(row) > 1 else row[0]

    def insert(self, at, start, end, comb, extra=None):
        if payload_list := self._pick("PayloadList", at):
            self._insert(payload_list, at, start, end, comb, extra)

    def insert_detached(self, at, start, end, comb):
        if self.may_detach:
            self._insert(None, at, start, end, comb, None)

    def _insert(self, payload_list, at, start, end, comb, extra):
        if comb == "stale":
            other = self._pick("PayloadIOV", at, "major_iov, minor_iov")
            comb = None if None in other else combined(*other)
        url = f"{payload_list}-{start[0]}-{start[1]}-{at}.root"
        self.database.iov(payload_list, start, _end(start, end), url, comb=comb, extra=extra)

    def detach(self, at):
        if self.may_detach:
            row = self._pick("PayloadIOV", at)
            self.execute("UPDATE {PayloadIOV} SET payload_list_id = NULL WHERE id = %s", row)

    def delete(self, at):
        self.execute("DELETE FROM {PayloadIOV} WHERE id = %s", self._pick("PayloadIOV", at))

    def change_end(self, at, end):
        row, *start = self._pick("PayloadIOV", at, "id, major_iov, minor_iov")
        if self.has_ends and row:
            changes = "major_iov_end = %s, minor_iov_end = %s"
            self.execute(f"UPDATE {{PayloadIOV}} SET {changes} WHERE id = %s", *_end(tuple(start), end), row)  # noqa: S608

    def change_url(self, at, url):
        self.execute("UPDATE {PayloadIOV} SET payload_url = %s WHERE id = %s", url, self._pick("PayloadIOV", at))

    def add_list(self, at, payload_type):
        self.database.payload_list(payload_type, self._pick("GlobalTag", at))

    def detach_list(self, at):
        payload_list = self._pick("PayloadList", at)
        self.execute("UPDATE {PayloadList} SET global_tag_id = NULL WHERE id = %s", payload_list)

    def move_list(self, at, to):
        payload_list, tag = self._pick("PayloadList", at), self._pick("GlobalTag", to)
        self.execute("UPDATE {PayloadList} SET global_tag_id = %s WHERE id = %s", tag, payload_list)

    def add_tag(self, at, status):
        number = self.execute("SELECT coalesce(max(id), 0) FROM {GlobalTag}")[0][0]
        self.database.payload_list(TYPES[at % len(TYPES)], self.database.tag(f"tag_{number}_{at}", status))

    def change_status(self, at, status):
        tag = self._pick("GlobalTag", at)
        self.execute("UPDATE {GlobalTag} SET status_id = %s WHERE id = %s", self.database.status(status), tag)

    def delete_tag(self, at):
        tag = self._pick("GlobalTag", at)
        lists = "SELECT id FROM {PayloadList} WHERE global_tag_id = %s"
        self.execute(f"DELETE FROM {{PayloadIOV}} WHERE payload_list_id IN ({lists})", tag)  # noqa: S608
        self.execute("DELETE FROM {PayloadList} WHERE global_tag_id = %s", tag)
        self.execute("DELETE FROM {GlobalTag} WHERE id = %s", tag)


def _end(start: tuple[int, int], end: Any) -> tuple[int, int]:
    named = {"open": OPEN_END, "next": (start[0] + 1, 0), "empty": start, "major": (start[0], MAX)}
    # The last major has no next one.
    return min(named.get(end, end), OPEN_END) if isinstance(end, str) else end
