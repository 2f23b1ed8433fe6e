"""The time of seeding compared with a bare COPY of the same rows.

seed_scenario into a new database; then the same rows, exported to a file, by one COPY into the truncated table with its
index, foreign key and triggers; then into the same table without foreign key and triggers. Each begins after a checkpoint.
"""

import re
import tempfile
import time
from pathlib import Path

from loadtests.bench.harness import Harness
from loadtests.database import Database
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, ratio
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import manage

TITLE = "Seeding"
ROWS = "payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id"


def measure(harness: Harness, result: Result) -> None:
    """Seed a new database, and copy the same rows into tables of it."""
    largest = harness.sizes.largest
    harness.say(f"seed: {largest}")
    with (
        harness.empty_database("bench_seed") as (database, settings),
        tempfile.NamedTemporaryFile(dir=harness.data) as temporary,
    ):
        file = Path(temporary.name)
        database.run("CHECKPOINT")
        seeded = manage(settings, "seed_scenario", largest, "--layout", "random")
        inside = float(re.search(r"created in ([\d.]+) s", seeded.output)[1])
        with database.connect() as connection, file.open("w") as target:
            # In the order of insertion.
            order = f'COPY (SELECT {ROWS} FROM "PayloadIOV" ORDER BY id) TO STDOUT'
            connection.cursor().copy_expert(order, target)
        database.run('TRUNCATE "PayloadIOV"')
        same = _copy(database, '"PayloadIOV"', file)
        begin = time.perf_counter()
        database.run('VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"')
        vacuum = time.perf_counter() - begin
        database.run('TRUNCATE "PayloadIOV"')
        database.run('CREATE TABLE bare (LIKE "PayloadIOV" INCLUDING ALL)')
        bare = _copy(database, "bare", file)
    seconds = {
        "seed_scenario, the whole command": seeded.seconds,
        "seed_scenario, by its own clock": inside,
        "COPY into the same table": same,
        "VACUUM (ANALYZE) after the COPY, which seed_scenario includes": vacuum,
        "COPY into a table without foreign key and triggers": bare,
    }
    memory = {"what": "peak memory of the seeding process", "megabytes": seeded.peak_bytes / 1e6}
    rows = [{"what": what, "seconds": value, "ratio": ratio(value, same)} for what, value in seconds.items()]
    result.raw += [*rows, memory]
    result.tables.append(Table.of(largest, rows, "what seconds ratio", ratio="÷ COPY into the same table"))
    result.targets += [
        Target(f"seeding {largest} ÷ COPY into the same table", ratio(seeded.seconds, same), 1.5, at_most=True),
        Target(memory["what"], memory["megabytes"], 300, at_most=True, unit="MB"),
    ]
    result.notes.append(
        "seed_scenario also runs VACUUM and ANALYZE. With these on both sides the ratio is "
        f"{seeded.seconds / (same + vacuum):.2f}; the target uses the stricter ratio."
    )
    spreads = {what: Spread.of([value]) for what, value in seconds.items()}
    result.plots.append(plots.bars(f"{largest}: seconds", spreads, x="seconds"))


def _copy(database: Database, table: str, file: Path) -> float:
    """Copy the rows from the file; returns seconds, including the commit."""
    database.run("CHECKPOINT")
    with database.connect() as connection, file.open() as source:
        begin = time.perf_counter()
        connection.cursor().copy_expert(f"COPY {table} ({ROWS}) FROM STDIN", source)
        return time.perf_counter() - begin
