"""The time of seeding compared with a bare COPY of the same rows.

seed_scenario into a new database, which includes VACUUM and ANALYZE; then the same rows, exported to a file, by one COPY into
the truncated table with its index, foreign key and triggers, and the same VACUUM; then into the same table without foreign
key and triggers. Each COPY begins after a checkpoint.
"""

import tempfile
import time
from pathlib import Path

from loadtests.bench.harness import Harness, compare_seconds
from loadtests.database import Database
from loadtests.reporting.result import Result, Target
from loadtests.service import manage

TITLE = "Seeding"
ROWS = "payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id"
SEED, COPY = "seed_scenario, the whole command", "COPY into the same table"
VACUUM = 'VACUUM (ANALYZE) "PayloadIOV", "PayloadList", "PayloadType", "GlobalTag"'


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
        with database.connect() as connection, file.open("w") as target:
            # In the order of insertion.
            order = f'COPY (SELECT {ROWS} FROM "PayloadIOV" ORDER BY id) TO STDOUT'
            connection.cursor().copy_expert(order, target)
        database.run('TRUNCATE "PayloadIOV"')
        seconds = {SEED: seeded.seconds, COPY: _copy(database, '"PayloadIOV"', file)}
        begin = time.perf_counter()
        database.run(VACUUM)
        seconds["VACUUM (ANALYZE) after the COPY"] = time.perf_counter() - begin
        database.run('TRUNCATE "PayloadIOV"')
        database.run('CREATE TABLE bare (LIKE "PayloadIOV" INCLUDING ALL)')
        seconds["COPY into a table without foreign key and triggers"] = _copy(database, "bare", file)
    rows = [{"what": what, "seconds": value} for what, value in seconds.items()]
    ratios = compare_seconds(result, f"Seeding {largest}", rows, COPY)
    result.raw += [*rows, {"what": "peak memory of the seeding process", "megabytes": seeded.peak_bytes / 1e6}]
    result.targets += [
        Target(f"seeding {largest} ÷ {COPY}", ratios[SEED], 1.5, at_most=True),
        Target("peak memory of the seeding process", seeded.peak_bytes / 1e6, 300, at_most=True, unit="MB"),
    ]


def _copy(database: Database, table: str, file: Path) -> float:
    """Copy the rows from the file; returns seconds, including the commit."""
    database.run("CHECKPOINT")
    with database.connect() as connection, file.open() as source:
        begin = time.perf_counter()
        connection.cursor().copy_expert(f"COPY {table} ({ROWS}) FROM STDIN", source)
        return time.perf_counter() - begin
