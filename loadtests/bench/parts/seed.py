"""The time of seeding compared with a bare COPY of the same rows."""

import re
import time
from pathlib import Path

from loadtests.bench.rig import Rig
from loadtests.database import Database
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import manage

TITLE = "Seeding"
NAME = "bench_seed"
ROWS = "payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id"
SEEDING, INSIDE = "seed_scenario, the whole command", "seed_scenario, by its own clock"
SAME, BARE = "COPY into the same table", "COPY into a table without foreign key and triggers"
VACUUM = "VACUUM (ANALYZE) after the COPY, which seed_scenario includes"
INTRO = (
    "seed_scenario into a new database; then the same rows, exported to a file, by one COPY into the truncated table with its "
    "index, foreign key and triggers; then into the same table without foreign key and triggers. Each begins after a checkpoint."
)


def measure(rig: Rig) -> Result:
    """Measure in rounds, each in a new database."""
    result = Result("seed", TITLE, INTRO)
    peaks = []
    for number in range(1, rig.sizes.seed_rounds + 1):
        rig.say(f"seed: {rig.sizes.largest}, round {number} of {rig.sizes.seed_rounds}")
        database = rig.database.create_sibling(NAME)
        file = rig.data / "seed.copy"
        try:
            seconds, peak = _round(rig, database, file)
        finally:
            file.unlink(missing_ok=True)
            rig.database.drop_sibling(NAME)
        peaks.append(peak / 1e6)
        result.raw += [{"round": number, "what": what, "seconds": value} for what, value in seconds.items()]
        result.raw.append({"round": number, "what": "peak memory of the seeding process", "megabytes": peak / 1e6})
    _show(rig, result, max(peaks))
    return result


def _round(rig: Rig, database: Database, file: Path) -> tuple[dict[str, float], int]:
    settings = rig.settings.with_database(database.url)
    manage(settings, "migrate", "--verbosity", "0")
    database.run("CHECKPOINT")
    seeded = manage(settings, "seed_scenario", rig.sizes.largest, "--layout", "random")
    seconds = {SEEDING: seeded.seconds}
    if own := re.search(r"created in ([\d.]+) s", seeded.output):
        seconds[INSIDE] = float(own[1])
    with database.connect() as connection, file.open("w") as target:
        # In the order of insertion.
        order = f'COPY (SELECT {ROWS} FROM "PayloadIOV" ORDER BY id) TO STDOUT'
        connection.cursor().copy_expert(order, target)
    database.run('TRUNCATE "PayloadIOV"')
    seconds[SAME] = _copy(database, '"PayloadIOV"', file)
    begin = time.perf_counter()
    database.run('VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"')
    seconds[VACUUM] = time.perf_counter() - begin
    database.run('TRUNCATE "PayloadIOV"')
    database.run('CREATE TABLE bare (LIKE "PayloadIOV" INCLUDING ALL)')
    seconds[BARE] = _copy(database, "bare", file)
    return seconds, seeded.peak_bytes


def _copy(database: Database, table: str, file: Path) -> float:
    """Copy the rows from the file; returns seconds, including the commit."""
    database.run("CHECKPOINT")
    with database.connect() as connection, file.open() as source:
        begin = time.perf_counter()
        connection.cursor().copy_expert(f"COPY {table} ({ROWS}) FROM STDIN", source)
        return time.perf_counter() - begin


def _show(rig: Rig, result: Result, peak: float) -> None:
    by_name: dict[str, list[float]] = {}
    for row in result.raw:
        if "seconds" in row:
            by_name.setdefault(row["what"], []).append(row["seconds"])
    spreads = {what: Spread.of(values) for what, values in by_name.items()}
    copied = spreads[SAME].median
    result.targets += [
        Target(
            f"seeding {rig.sizes.largest} ÷ COPY into the same table",
            ratio(spreads[SEEDING].median, copied),
            1.5,
            at_most=True,
        ),
        Target("peak memory of the seeding process", peak, 300, at_most=True, unit="MB"),
    ]
    rows = [(what, one.median, one.low, one.high, ratio(one.median, copied)) for what, one in spreads.items()]
    columns = ("what", "median s", "least s", "most s", "÷ COPY into the same table")
    result.tables.append(Table(rig.sizes.largest, columns, rows))
    together = ratio(spreads[SEEDING].median, copied + spreads[VACUUM].median)
    result.notes.append(
        f"seed_scenario also runs VACUUM and ANALYZE. With these on both sides the ratio is {together:.2f}; the target uses the "
        "stricter ratio."
    )
    result.plots.append(plots.bars(f"{rig.sizes.largest}: seconds", spreads, x="seconds"))
