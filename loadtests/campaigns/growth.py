"""How does the cost of writing and reading grow with the size of a tag?

Blocks of 1,000 inserts and of 1,000 lookups alternate, with eight concurrent clients. The campaign creates a
tag and payload types and deletes them at the end; the change log of a deployment keeps the changes. Each lookup
requests the start of an IOV that the previous block inserted, and the whole response is checked.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from cdb_rest.management.quantities import Number
from loadtests.campaigns.api import send
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.content.blocks import TYPES, type_of
from loadtests.recording.outcome import OK
from loadtests.reporting import plots, summaries
from loadtests.reporting.figures import number, percentile, ratio
from loadtests.reporting.findings import Findings, Run
from loadtests.reporting.result import Plot, Table, Target
from loadtests.service import ServiceError

TITLE = "Growth, block by block"
TAG = "load-growth"
BLOCKS, BLOCK, CONCURRENCY = 20, 1_000, 8
QUICK_BLOCKS, QUICK_BLOCK = 2, 80
SHARES = (90, 95, 99)
INSERTS, LOOKUPS = "inserts", "lookups"
USERS = {INSERTS: "Inserter", LOOKUPS: "ReadBack"}
# The bound for the median of the last quarter of the blocks ÷ that of the first, and the least number of blocks
# to compare.
MOST_GROWTH, COMPARED_FROM = 2.0, 8
COLUMNS = (
    "block", "IOVs at its end", "what", "requests", "requests/s", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "rows per answer",
    "failed",
)  # fmt: skip


@dataclass(frozen=True)
class _Block:
    """A block of inserts or lookups; `iovs` is the number of IOVs in the tag at its end."""

    number: int
    what: str
    iovs: int
    run: Run

    def at(self, share: float) -> float:
        """A percentile of the response times in milliseconds."""
        return percentile(self.run.recording.requests.milliseconds.tolist(), share)


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the number and size of the blocks."""
    add = parser.add_argument
    described = f"blocks of inserts, and as many of lookups (default: {BLOCKS})"
    add("--blocks", action=Number, kind=int, least=1, metavar="N", help=described)
    add("--block", action=Number, kind=int, least=1, metavar="N", help=f"requests per block (default: {BLOCK:,})")


def run(stage: Stage) -> Findings:
    """Insert and look up block by block."""
    count = int(stage.options.get("blocks", QUICK_BLOCKS if stage.quick else BLOCKS))
    size = int(stage.options.get("block", QUICK_BLOCK if stage.quick else BLOCK))
    each = max(1, size // CONCURRENCY)
    blocks: list[_Block] = []
    with stage.serving():
        types = _prepare(stage)
        try:
            for block in range(count):
                first = block * each * CONCURRENCY
                for what, user in USERS.items():
                    load = Load(
                        {user: 1}, count=CONCURRENCY, campaign_users=True,
                        options={"jobs-per-user": each, "numbers-from": first, "global-tag": TAG},
                    )  # fmt: skip
                    done = stage.load(f"block {block + 1}, {what}", load, detailed=False)
                    blocks.append(_Block(block + 1, what, first + each * CONCURRENCY, done))
        finally:
            send(stage.url, "DELETE", f"deleteGlobalTag/{TAG}")
            for name in types:
                send(stage.url, "DELETE", f"deletePayloadType/{name}", also=(404, 409))
    return _findings(blocks)


def _prepare(stage: Stage) -> list[str]:
    """Create an empty tag and the payload types; returns the payload types that did not exist before.

    Raises `ServiceError` if a remote deployment already has a tag of that name, which may belong to another user.
    """
    url = stage.url
    if send(url, "GET", f"globalTag/{TAG}?light", also=(404,)).get("name") == TAG:
        if stage.host:
            raise ServiceError(
                f"the global tag {TAG} already exists: another run is active, or an earlier one left it; delete it first"
            )
        send(url, "DELETE", f"deleteGlobalTag/{TAG}")
    send(url, "POST", "gt", {"name": TAG, "status": "unlocked", "author": "load test"})
    names = [type_of(place) for place in range(TYPES)]
    # 400: the payload type already exists.
    return [name for name in names if "id" in send(url, "POST", "pt", {"name": name}, also=(400,))]


def _findings(blocks: list[_Block]) -> Findings:
    growth = {what: _growth(blocks, what) for what in USERS}
    last, rows = {block.what: block for block in blocks}, [_row(block) for block in blocks]
    return Findings(
        summary=f"with {last[INSERTS].iovs:,} IOVs in the tag: p95 of an insert {number(last[INSERTS].at(95))} ms, of a lookup "
        f"{number(last[LOOKUPS].at(95))} ms",
        targets=_targets(blocks, growth),
        tables=[Table(f"Blocks, {CONCURRENCY} requests at a time", COLUMNS, rows)],
        plots=list(_plots(blocks)),
        runs=[block.run for block in blocks],
        raw=[dict(zip(COLUMNS, row, strict=True)) for row in rows],
        notes=_notes(),
        figures={
            f"{what}, last quarter of the blocks: p{share} ms": [_late(blocks, what, share)]
            for what in USERS
            for share in (50, *SHARES)
        },
    )


def _targets(blocks: list[_Block], growth: dict[str, float | None]) -> list[Target]:
    outcomes = [block.run.recording.requests.outcomes for block in blocks]
    right = sum(int((found == OK).sum()) for found in outcomes) / sum(map(len, outcomes))
    fewest = min(_rows(block) or 0 for block in blocks if block.what == LOOKUPS)
    compared = [
        Target(f"{what}: p50 in the last quarter of the blocks ÷ the first", grown, MOST_GROWTH, at_most=True)
        for what, grown in growth.items()
        if grown is not None
    ]
    return [
        Target("correct responses", right * 100, 100, at_most=False, unit="%"),
        Target("fewest rows per lookup", fewest, 1, at_most=False),
        *compared,
    ]


def _growth(blocks: list[_Block], what: str) -> float | None:
    medians = [block.at(50) for block in blocks if block.what == what]
    if len(medians) < COMPARED_FROM:
        return None
    part = len(medians) // 4
    return ratio(percentile(medians[-part:], 50), percentile(medians[:part], 50))


def _late(blocks: list[_Block], what: str, share: float) -> float:
    """The median of a percentile over the last quarter of the blocks.

    It is one value, because the blocks of a run are not independent repetitions: they share what differs between runs.
    """
    values = [block.at(share) for block in blocks if block.what == what]
    return percentile(values[-max(1, len(values) // 4) :], 50)


def _rows(block: _Block) -> float | None:
    return summaries.of(block.run)["rows_per_answer"]


def _row(block: _Block) -> tuple:
    of = summaries.of(block.run)
    times = [of[f"p{share}_ms"] for share in (50, *SHARES)]
    failed = sum(of["failures"].values())
    return (block.number, block.iovs, block.what, of["requests"], of["mean_rate"], *times, _rows(block), failed)


def _plots(blocks: list[_Block]) -> Iterator[Plot]:
    for what in USERS:
        series = {
            f"p{share}": [(block.iovs, block.at(share)) for block in blocks if block.what == what] for share in SHARES
        }
        yield plots.lines(f"Response time of {what}, each block", series, x="IOVs in the tag", y="ms")


def _notes() -> list[str]:
    return [
        "An insert is one request to payload-iovs/insert, which replaces piov and piov_attach. The IOV begins between those that "
        f"exist in one of {TYPES} payload lists, and is valid until the next one (`until: next`).",
        "Each lookup requests the start of an IOV of the previous block. The whole response, one row per list, is compared with "
        "the one that follows from all IOVs inserted until then.",
        f"There are {CONCURRENCY} concurrent clients, and each request uses a new connection. The first block of each kind also "
        "warms up the service.",
    ]
