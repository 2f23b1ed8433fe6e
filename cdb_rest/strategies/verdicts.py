"""Verdicts on lookup strategies: summaries of their plans, computed from the JSON of EXPLAIN (ANALYZE, BUFFERS)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

TABLE = "PayloadIOV"

# The parts of EXPLAIN's JSON that are used here. Most nodes have only some of them.
Node = TypedDict(
    "Node",
    {
        "Node Type": str,
        "Parallel Aware": bool,
        "Scan Direction": str,
        "Relation Name": str,
        "Index Name": str,
        "Index Cond": str,
        "Filter": str,
        "Actual Loops": int,
        "Actual Rows": float,
        "Rows Removed by Filter": float,
        "Rows Removed by Index Recheck": float,
        "Heap Fetches": int,
        "Shared Hit Blocks": int,
        "Shared Read Blocks": int,
        "Plans": "list[Node]",
    },
    total=False,
)
Plan = TypedDict("Plan", {"Plan": Node, "Planning Time": float, "Execution Time": float})


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan of the table PayloadIOV in a plan. Numbers are totals over all of its loops.

    `rows_read` includes `rows_removed`: the rows that a filter or a recheck of the index condition then removed. Both
    are approximate, because PostgreSQL reports rounded means over the loops. `heap_fetches` counts the rows that were
    read from the table itself: those that an index-only scan could not avoid, and all rows of any other scan.
    """

    kind: str
    indexes: tuple[str, ...]
    condition: str
    rows_read: int
    rows_removed: int
    heap_fetches: int

    @property
    def reads_index_only(self) -> bool:
        return self.kind.removeprefix("Parallel ").startswith("Index Only Scan")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The summary of a strategy's plans for a result of `rows` rows.

    `scans` are its scans of the table PayloadIOV. `kind`, `index` and `condition` list the distinct values of the
    scans. `buffers`, the pages of shared buffers that were hit or read, and times are totals over all statements.
    `missing_index` is the strategy's index if queries cannot use it, otherwise None.
    """

    strategy: str
    scans: tuple[Scan, ...]
    rows: int
    buffers: int
    planning_ms: float
    execution_ms: float
    missing_index: str | None = None

    @property
    def kind(self) -> str:
        return _together(scan.kind for scan in self.scans)

    @property
    def index(self) -> str:
        return _together(name for scan in self.scans for name in scan.indexes)

    @property
    def condition(self) -> str:
        return _together(scan.condition for scan in self.scans)

    @property
    def rows_read(self) -> int:
        return sum(scan.rows_read for scan in self.scans)

    @property
    def rows_removed(self) -> int:
        return sum(scan.rows_removed for scan in self.scans)

    @property
    def heap_fetches(self) -> int:
        return sum(scan.heap_fetches for scan in self.scans)

    @property
    def line(self) -> str:
        """The verdict in one line."""
        scans = _together(_name(scan) for scan in self.scans)
        per_row = "" if all(scan.reads_index_only for scan in self.scans) else " (one per row)"
        text = (
            f"{self.strategy}: {scans}, {self.condition}, {self.rows_removed:,} rows removed, "
            f"{self.heap_fetches:,} heap fetches{per_row}, {self.buffers:,} buffers, {self.rows:,} rows, "
            f"{self.execution_ms:.1f} ms"
        )
        return f"{text}; {self.advice}" if self.missing_index else text

    @property
    def advice(self) -> str:
        """The advice for a missing index. `missing_index` must not be None."""
        return f"its index {self.missing_index} is missing: manage.py strategy_indexes create"


def judge(strategy: str, plans: Sequence[Plan], *, rows: int, missing_index: str | None = None) -> Verdict:
    """The verdict on `strategy`, whose statements have these plans and whose result has `rows` rows."""
    return Verdict(
        strategy,
        tuple(scan for plan in plans for scan in scans(plan["Plan"])),
        rows,
        sum(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] for plan in plans),
        sum(plan["Planning Time"] for plan in plans),
        sum(plan["Execution Time"] for plan in plans),
        missing_index,
    )


def scans(plan: Node) -> list[Scan]:
    """The scans of the table PayloadIOV in a plan, in the order in which EXPLAIN shows them."""
    return [_scan(node) for node in _nodes(plan) if node.get("Relation Name") == TABLE]


def _scan(node: Node) -> Scan:
    kind = node["Node Type"]
    if node.get("Parallel Aware"):
        kind = f"Parallel {kind}"
    if node.get("Scan Direction") == "Backward":
        kind = f"{kind} Backward"
    # The nodes below a bitmap heap scan read its indexes.
    readers = [node, *(below for child in node.get("Plans", []) for below in _nodes(child))]
    loops = node["Actual Loops"]
    # PostgreSQL reports rows as rounded means over the loops, but heap fetches as a total.
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    rows_read = round((node["Actual Rows"] + removed) * loops)
    return Scan(
        kind,
        tuple(dict.fromkeys(reader["Index Name"] for reader in readers if "Index Name" in reader)),
        _condition(any("Index Cond" in reader for reader in readers), "Filter" in node),
        rows_read,
        round(removed * loops),
        node.get("Heap Fetches", rows_read),
    )


def _condition(has_index_cond: bool, has_filter: bool) -> str:
    if has_index_cond:
        return "Index Cond and Filter" if has_filter else "Index Cond alone"
    return "Filter alone" if has_filter else "no condition"


def _nodes(plan: Node) -> Iterator[Node]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


def _name(scan: Scan) -> str:
    return f"{scan.kind} of {_together(scan.indexes)}" if scan.indexes else scan.kind


def _together(words: Iterable[str]) -> str:
    """The distinct words in order, joined by +; a dash if there are none."""
    return " + ".join(dict.fromkeys(words)) or "-"
