"""How does the cost of writing and reading grow with the size of a tag?

Blocks of 1,000 inserts and of 1,000 lookups alternate, with eight concurrent clients. The campaign creates a
tag and payload types and deletes them at the end; the change log of a deployment keeps the changes. Each lookup
requests the start of an IOV that the previous block inserted, and the whole response is checked.
"""

import argparse
from collections.abc import Iterator
from typing import Any

from cdb_rest.management.quantities import AT_LEAST_ONE
from loadtests.campaigns import options
from loadtests.campaigns.locusts import Load
from loadtests.campaigns.stage import Stage
from loadtests.content.blocks import TYPES, type_of
from loadtests.reporting import plots, summaries
from loadtests.reporting.figures import curves, grouped, number, percentile, ratio
from loadtests.reporting.report import notes
from loadtests.reporting.result import Findings, Plot, Run, Table, Target, all_correct
from loadtests.service import ServiceError

TAG = "load-growth"
BLOCKS, BLOCK, CONCURRENCY = 20, 1_000, 8
QUICK_BLOCKS, QUICK_BLOCK = 2, 80
INSERTS, LOOKUPS = "inserts", "lookups"
USERS = {INSERTS: "Inserter", LOOKUPS: "ReadBack"}
# The bound for the median of the last quarter of the blocks ÷ that of the first, and the least number of blocks
# to compare.
MOST_GROWTH, COMPARED_FROM = 2.0, 8
# The columns of the table.
KEYS = "block iovs what requests mean_rate p50_ms p90_ms p95_ms p99_ms rows_per_response failed"


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options for the number and size of the blocks."""
    options.add(parser, "--blocks", "blocks of inserts, and as many of lookups", BLOCKS, QUICK_BLOCKS, **AT_LEAST_ONE)
    options.add(parser, "--block", "requests per block", BLOCK, QUICK_BLOCK, **AT_LEAST_ONE)


def run(stage: Stage) -> Findings:
    """Insert and look up block by block."""
    each = max(1, stage.options.block // CONCURRENCY)
    rows: list[dict[str, Any]] = []
    with stage.serving():
        types = _prepare(stage)
        try:
            for block in range(stage.options.blocks):
                first = block * each * CONCURRENCY
                for what, user in USERS.items():
                    settings = {"jobs-per-user": each, "numbers-from": first, "global-tag": TAG}
                    load = Load({user: 1}, CONCURRENCY, options=settings)
                    done = stage.load(f"block {block + 1}, {what}", load, detailed=False)
                    of = summaries.summary_of(done.recording)
                    of["failed"] = sum(of.pop("failures").values())
                    rows.append({"block": block + 1, "iovs": first + each * CONCURRENCY, "what": what, **of})
        finally:
            client = stage.client()
            client.call("DELETE", f"deleteGlobalTag/{TAG}")
            for name in types:
                client.call("DELETE", f"deletePayloadType/{name}", also=(404, 409))
    return _findings(stage.runs, rows)


def _prepare(stage: Stage) -> list[str]:
    """Create an empty tag and the payload types; returns the payload types that did not exist before.

    Raises `ServiceError` if a remote deployment already has a tag of that name, which may belong to another user.
    """
    client = stage.client()
    if client.call("GET", f"globalTag/{TAG}?light", also=(404,)).status == 200:
        if stage.host:
            raise ServiceError(
                f"the global tag {TAG} already exists: another run is active, or an earlier one left it; delete it first"
            )
        client.call("DELETE", f"deleteGlobalTag/{TAG}")
    client.call("POST", "gt", {"name": TAG, "status": "unlocked", "author": "load test"})
    names = [type_of(place) for place in range(TYPES)]
    # 400: the payload type already exists.
    return [name for name in names if client.call("POST", "pt", {"name": name}, also=(400,)).status != 400]


def _findings(runs: list[Run], rows: list[dict[str, Any]]) -> Findings:
    blocks = grouped(rows, "what")
    insert, lookup = blocks[INSERTS][-1], blocks[LOOKUPS][-1]
    fewest = min(row["rows_per_response"] or 0 for row in blocks[LOOKUPS])
    return Findings(
        summary=f"with {insert['iovs']:,} IOVs in the tag: p95 of an insert {number(insert['p95_ms'])} ms, of a lookup "
        f"{number(lookup['p95_ms'])} ms",
        targets=[all_correct(runs), Target("fewest rows per lookup", fewest, 1, at_most=False), *_growth(blocks)],
        tables=[Table.of(f"Blocks, {CONCURRENCY} requests at a time", rows, KEYS, iovs="IOVs at its end")],
        plots=[_plot(what, found) for what, found in blocks.items()],
        runs=runs,
        raw=rows,
        notes=notes("growth", types=TYPES, clients=CONCURRENCY),
        figures={
            f"{what}, last quarter of the blocks: p{share} ms": [_late([row[f"p{share}_ms"] for row in found])]
            for what, found in blocks.items()
            for share in (50, 90, 95, 99)
        },
    )


def _growth(blocks: dict[str, list[dict[str, Any]]]) -> Iterator[Target]:
    """The medians of the last quarter of the blocks ÷ those of the first; none with too few blocks."""
    for what, found in blocks.items():
        medians, part = [row["p50_ms"] for row in found], len(found) // 4
        if len(found) >= COMPARED_FROM and (grown := ratio(_late(medians), percentile(medians[:part], 50))) is not None:
            yield Target(f"{what}: p50 in the last quarter of the blocks ÷ the first", grown, MOST_GROWTH, at_most=True)


def _plot(what: str, found: list[dict[str, Any]]) -> Plot:
    series = {f"p{share}": curves(found, "what", "iovs", f"p{share}_ms")[what] for share in (90, 95, 99)}
    return plots.lines(f"Response time of {what}, each block", series, x="IOVs in the tag", y="ms")


def _late(values: list[float]) -> float:
    """The median over the last quarter of the blocks.

    It is one value, because the blocks of a run are not independent repetitions: they share what differs between runs.
    """
    return percentile(values[-max(1, len(values) // 4) :], 50)
