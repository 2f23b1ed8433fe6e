"""The time of seeding compared with a bare COPY of the same rows.

seed_scenario into a new database; then the same rows, exported to a file, by one COPY into the truncated table with its
index, foreign key and triggers; then into the same table without foreign key and triggers. Each begins after a checkpoint.
"""

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from loadtests.bench.harness import Harness
from loadtests.database import Database
from loadtests.reporting import plots
from loadtests.reporting.figures import ratio, ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Settings, manage

TITLE = "Seeding"
ROWS = "payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id"
SEEDING, INSIDE = "seed_scenario, the whole command", "seed_scenario, by its own clock"
SAME, BARE = "COPY into the same table", "COPY into a table without foreign key and triggers"
VACUUM = "VACUUM (ANALYZE) after the COPY, which seed_scenario includes"
MEMORY = "peak memory of the seeding process"


def measure(harness: Harness, result: Result) -> None:
    """Measure in rounds, each in a new database."""
    for number in range(1, harness.sizes.seed_rounds + 1):
        harness.say(f"seed: {harness.sizes.largest}, round {number} of {harness.sizes.seed_rounds}")
        with (
            harness.empty_database("bench_seed") as (database, settings),
            tempfile.NamedTemporaryFile(dir=harness.data) as file,
        ):
            for what, unit, value in _round(harness, database, settings, Path(file.name)):
                result.raw.append({"round": number, "what": what, unit: value})
    _show(harness, result)


def _round(harness: Harness, database: Database, settings: Settings, file: Path) -> Iterator[tuple[str, str, float]]:
    """The measured values, with what they are and their units."""
    database.run("CHECKPOINT")
    seeded = manage(settings, "seed_scenario", harness.sizes.largest, "--layout", "random")
    yield SEEDING, "seconds", seeded.seconds
    yield INSIDE, "seconds", float(re.search(r"created in ([\d.]+) s", seeded.output)[1])
    with database.connect() as connection, file.open("w") as target:
        # In the order of insertion.
        order = f'COPY (SELECT {ROWS} FROM "PayloadIOV" ORDER BY id) TO STDOUT'
        connection.cursor().copy_expert(order, target)
    database.run('TRUNCATE "PayloadIOV"')
    yield SAME, "seconds", _copy(database, '"PayloadIOV"', file)
    begin = time.perf_counter()
    database.run('VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"')
    yield VACUUM, "seconds", time.perf_counter() - begin
    database.run('TRUNCATE "PayloadIOV"')
    database.run('CREATE TABLE bare (LIKE "PayloadIOV" INCLUDING ALL)')
    yield BARE, "seconds", _copy(database, "bare", file)
    yield MEMORY, "megabytes", seeded.peak_bytes / 1e6


def _copy(database: Database, table: str, file: Path) -> float:
    """Copy the rows from the file; returns seconds, including the commit."""
    database.run("CHECKPOINT")
    with database.connect() as connection, file.open() as source:
        begin = time.perf_counter()
        connection.cursor().copy_expert(f"COPY {table} ({ROWS}) FROM STDIN", source)
        return time.perf_counter() - begin


def _show(harness: Harness, result: Result) -> None:
    largest, found = harness.sizes.largest, spreads(result.raw, "what", "seconds")
    ratios = ratios_to(found, SAME)
    peak = spreads(result.raw, "what", "megabytes")[MEMORY].high
    result.targets += [
        Target(f"seeding {largest} ÷ COPY into the same table", ratios[SEEDING], 1.5, at_most=True),
        Target(MEMORY, peak, 300, at_most=True, unit="MB"),
    ]
    rows = [(what, *vars(one).values(), ratios[what]) for what, one in found.items()]
    shown = ("what", "median s", "least s", "most s", "÷ COPY into the same table")
    result.tables.append(Table(largest, shown, rows))
    together = ratio(found[SEEDING].median, found[SAME].median + found[VACUUM].median)
    result.notes.append(
        f"seed_scenario also runs VACUUM and ANALYZE. With these on both sides the ratio is {together:.2f}; the target uses the "
        "stricter ratio."
    )
    result.plots.append(plots.bars(f"{largest}: seconds", found, x="seconds"))
