"""How does the cost of writing and reading grow with what is there?

Blocks of 1,000 inserts and of 1,000 lookups take turns, eight at a time, in a tag that is made for this and deleted at the end,
with its payload types; a deployment's change log keeps what was done. Lookups ask for the start of each IOV that the block
before them inserted, and check all that is answered.
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
# The median of the last quarter of the blocks by that of the first; with fewer blocks there is nothing to compare.
MOST_GROWTH, COMPARED_FROM = 2.0, 8
COLUMNS = (
    "block", "IOVs at its end", "what", "requests", "requests/s", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "rows per answer",
    "failed",
)  # fmt: skip


@dataclass(frozen=True)
class _Block:
    """One block: `iovs` are there at its end."""

    number: int
    what: str
    iovs: int
    run: Run

    def at(self, share: float) -> float:
        """A percentile of the response times in milliseconds."""
        return percentile(self.run.recording.requests.milliseconds.tolist(), share)


def add_options(parser: argparse._ArgumentGroup) -> None:
    """How far it grows."""
    parser.add_argument(
        "--blocks", action=Number, kind=int, least=1, metavar="N", help=f"of inserts, and as many of lookups ({BLOCKS})"
    )
    parser.add_argument("--block", action=Number, kind=int, least=1, metavar="N", help=f"requests in each ({BLOCK:,})")


def run(stage: Stage) -> Findings:
    """Grow."""
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
    """An empty tag, and the payload types, of which those are returned that were not there before.

    Raises `ServiceError` if a deployment has a tag of that name: it may be somebody's.
    """
    url = stage.url
    if send(url, "GET", f"globalTag/{TAG}?light", also=(404,)).get("name") == TAG:
        if stage.host:
            raise ServiceError(
                f"there is a global tag {TAG} already: another run goes on, or one left it; delete it first"
            )
        send(url, "DELETE", f"deleteGlobalTag/{TAG}")
    send(url, "POST", "gt", {"name": TAG, "status": "unlocked", "author": "load test"})
    names = [type_of(place) for place in range(TYPES)]
    # 400: there is one of that name already.
    return [name for name in names if "id" in send(url, "POST", "pt", {"name": name}, also=(400,))]


def _findings(blocks: list[_Block]) -> Findings:
    growth = {what: _growth(blocks, what) for what in USERS}
    last, rows = {block.what: block for block in blocks}, [_row(block) for block in blocks]
    return Findings(
        summary=f"with {last[INSERTS].iovs:,} IOVs in the tag: p95 of an insert {number(last[INSERTS].at(95))} ms, of a lookup "
        f"{number(last[LOOKUPS].at(95))} ms",
        question="How does the cost of writing and reading grow with what is there?",
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
        Target("right answers, read back from the block before", right * 100, 100, at_most=False, unit="%"),
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
    """The median of a percentile in the last quarter of the blocks.

    It is one value: blocks of one run are no repetitions, since what differs from one run to the next is the same in all of them.
    """
    values = [block.at(share) for block in blocks if block.what == what]
    return percentile(values[-max(1, len(values) // 4) :], 50)


def _rows(block: _Block) -> float | None:
    told = summaries.of(block.run)
    return told["rows_per_answer"]


def _row(block: _Block) -> tuple:
    told = summaries.of(block.run)
    times = [told[f"p{share}_ms"] for share in (50, *SHARES)]
    failed = sum(told["failures"].values())
    return (block.number, block.iovs, block.what, told["requests"], told["mean_rate"], *times, _rows(block), failed)


def _plots(blocks: list[_Block]) -> Iterator[Plot]:
    for what in USERS:
        series = {
            f"p{share}": [(block.iovs, block.at(share)) for block in blocks if block.what == what] for share in SHARES
        }
        yield plots.lines(f"Response time of {what}, each block", series, x="IOVs in the tag", y="ms")


def _notes() -> list[str]:
    return [
        "An insert is one call of payload-iovs/insert, as by an expert's client that does not go by piov and piov_attach: the "
        f"IOV begins somewhere among those that are there in one of {TYPES} lists, and is valid until the next one "
        "(`until: next`).",
        "Each lookup asks for the start of an IOV of the block before and holds the whole answer, one row of every list, "
        "against what follows from the numbers of all IOVs inserted until then.",
        f"{CONCURRENCY} clients at a time, each over a new connection for each request. The first block of each "
        "kind also warms up.",
    ]
