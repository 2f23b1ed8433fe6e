"""The harness of the bench: load with its costs, and tables that several parts have."""

import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import psutil

from cdb.embedded import binaries
from loadtests import usage, wrk
from loadtests.bench.sizes import FULL, Sizes
from loadtests.database import Database
from loadtests.harness import Harness as PlainHarness
from loadtests.harness import in_turns
from loadtests.reporting import plots
from loadtests.reporting.figures import grouped, ratios_to, spreads
from loadtests.reporting.result import Result, Table
from loadtests.service import Service, Settings, manage, run_to_end

# Warming up ends when a run is not faster than the previous ones by this factor, or after this number of runs.
WARM_GAIN, WARM_RUNS = 1.1, 10
SETTLE_SECONDS = 0.2
BESIDE_CONNECTIONS = 4
PGBENCH = binaries.BINARIES / "pgbench"
# The figures in the output of pgbench.
TRANSACTIONS = {
    "responses": r"transactions actually processed: (\d+)",
    "responses_per_s": r"^tps = ([\d.]+)",
    "latency_ms": r"latency average = ([\d.]+)",
    "errors": r"number of failed transactions: (\d+)",
}
LOADED = "responses_per_s p50_ms p95_ms p99_ms errors"
COSTS = "service_cpu_ms postgres_cpu_ms client_cpu_percent others_cpu_percent"


@dataclass
class Harness(PlainHarness):
    """The harness of one run of the bench."""

    sizes: Sizes = FULL
    most_client_share: float = field(default=0.0, init=False)

    @property
    def settings(self) -> Settings:
        """The settings of a service on the main database, without compiled tags: the part compiled has them."""
        return super().settings.having(CDB_COMPILED_BYTES="0")

    @contextlib.contextmanager
    def empty_database(self, name: str) -> Iterator[tuple[Database, Settings]]:
        """Another database inside the block, with empty tables of the service, and the settings of a service on it."""
        with self.database.sibling(name) as database:
            settings = self.settings.having(DATABASE_URL=database.url)
            manage(settings, "migrate", "--verbosity", "0")
            yield database, settings

    def load(
        self,
        service: Service,
        url: str,
        *,
        connections: int,
        seconds: int,
        replica: psutil.Process | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run wrk and return its figures and costs as a row for tables and CSV files.

        Rates are responses per second, CPU is milliseconds per response, shares are percent of all cores. `replica` is
        the main process of a replica, whose CPU counts separately. `options` are those of `wrk.run`.
        """
        roots = {"service": service.root(), "postgres": self.postmaster()} | ({"replica": replica} if replica else {})
        with usage.measured(**roots) as used:
            load = wrk.run(url, seconds=seconds, connections=connections, **options)
        self.most_client_share = max(self.most_client_share, load.client_share)
        times = {"p50_ms": load.p50, "p95_ms": load.p95, "p99_ms": load.p99, "max_ms": load.max}
        return {
            "connections": connections,
            "seconds": round(load.seconds, 3),
            "responses": load.requests,
            "responses_per_s": load.rate,
            **(times if load.requests else dict.fromkeys(times)),
            "bytes_per_response": load.bytes // max(1, load.requests),
            "errors": load.errors,
            "refused": load.refused,
            "timeouts": load.timeouts,
            "broken": load.broken,
            **_costs(used, load.requests, load.cpu_seconds, load.wall_seconds),
        }

    def lookups_beside(
        self,
        result: Result,
        service: Service,
        tag: str,
        what: str,
        seconds: int,
        activity: Callable[[threading.Event], None],
    ) -> list[dict[str, Any]]:
        """Measure lookups without and with a concurrent activity, which runs until it ends or the event is set.

        Adds a table to the result, and returns the two rows. `beside_percent` is the part of the lookups beside the activity.
        """
        self.say(f"{what}: lookups in {tag}, without and with it")
        load = {"url": service.lookup_url(tag), "connections": BESIDE_CONNECTIONS, "seconds": seconds}
        rows, over = [{"beside": "nothing", **self.load(service, **load)}], threading.Event()

        def act() -> float:
            activity(over)
            return time.perf_counter()

        with ThreadPoolExecutor() as pool:
            begin, acting = time.perf_counter(), pool.submit(act)
            try:
                row = {"beside": what, **self.load(service, **load)}
                end = time.perf_counter()
            finally:
                over.set()
            ended = acting.result()
        row |= {"activity_seconds": ended - begin, "beside_percent": 100 * (min(end, ended) - begin) / (end - begin)}
        rows.append(row)
        title = f"Lookups in {tag}, {BESIDE_CONNECTIONS} connections, {seconds} s"
        keys = f"beside {LOADED} max_ms others_cpu_percent activity_seconds beside_percent"
        result.tables.append(Table.of(title, rows, keys))
        result.raw += [{"tag": tag, "what": f"lookups beside {one['beside']}", **one} for one in rows]
        return rows

    def transactions(self, script: str, *, clients: int, seconds: int, mode: str, seed: int) -> dict[str, Any]:
        """Run a script of pgbench on the main database and return its figures and costs as a row.

        `mode` is simple or prepared. Raises `RuntimeError` with the end of the output if pgbench fails.
        """
        threads = min(clients, len(os.sched_getaffinity(0)))
        options = (
            f"--no-vacuum --client {clients} --jobs {threads} --time {seconds} --protocol {mode} --random-seed {seed}"
        )
        with (
            tempfile.NamedTemporaryFile("w", suffix=".sql") as file,
            usage.measured(postgres=self.postmaster()) as used,
        ):
            file.write(script)
            file.flush()
            command = [str(PGBENCH), *options.split(), "--file", file.name, self.database.url]
            done = run_to_end(command, binaries.ENVIRONMENT)
            # The CPU time of PostgreSQL's backends counts once its main process has waited for them.
            time.sleep(SETTLE_SECONDS)
        found = {name: re.search(pattern, done.output, re.MULTILINE) for name, pattern in TRANSACTIONS.items()}
        if not all(found.values()) or "aborted" in done.output:
            raise RuntimeError(f"pgbench failed: {' '.join(done.output.split())[-500:]}")
        row: dict[str, Any] = {name: float(match[1]) for name, match in found.items()}
        return row | _costs(used, row["responses"], done.cpu_seconds, done.seconds)

    def warm_up(self, service: Service, *tags: str) -> None:
        """Send lookups, so that every thread has its connection and plan, and the data are in memory."""
        for tag in tags:
            self.settle(service.lookup_url(tag), connections=service.workers * 4)

    def settle(self, url: str, *, connections: int, mode: str = "random") -> None:
        """Warm up: put load on `url` in runs of one second until it becomes no faster."""
        fastest = 0.0
        for number in range(WARM_RUNS):
            rate = wrk.run(url, seconds=1, connections=connections, mode=mode, seed=90 + number).rate
            if rate < fastest * WARM_GAIN:
                break
            fastest = rate

    def rounds(self, part: str, names: Sequence[str]) -> Iterator[tuple[int, str]]:
        """All names in each round, in alternating order, as (number of the round, name); says which one is measured."""
        for number, name in in_turns(names, self.sizes.rounds):
            self.say(f"{part}: round {number} of {self.sizes.rounds}, {name}")
            yield number, name


def compare_seconds(
    result: Result, title: str, rows: list[dict[str, Any]], base: str, *largest: str
) -> dict[str, float | None]:
    """Add a table and a plot of the `seconds` of rounds by `what`, with their ratios to `base`; returns the ratios.

    The table also has the largest values of the keys `largest`, which some rows have.
    """
    found, shown = spreads(rows, "what", "seconds"), []
    ratios = ratios_to(found, base)
    for what, group in grouped(rows, "what").items():
        most = {key: max((row[key] for row in group if key in row), default=None) for key in largest}
        shown.append({"what": what, **vars(found[what]), "ratio": ratios[what], **most})
    keys = " ".join(("what median low high ratio", *largest))
    result.tables.append(Table.of(title, shown, keys, ratio=f"÷ {base}"))
    result.plots.append(plots.bars(f"{title}: seconds", found, x="seconds"))
    return ratios


def _costs(used: dict[str, float], responses: float, client_seconds: float, wall: float) -> dict[str, float]:
    capacity, whole = wall * len(os.sched_getaffinity(0)), used.pop("whole")
    others = max(0.0, whole - sum(used.values()) - client_seconds)
    shares = {"client_cpu_percent": client_seconds * 100 / capacity, "others_cpu_percent": others * 100 / capacity}
    return {f"{name}_cpu_ms": seconds * 1000 / max(1, responses) for name, seconds in used.items()} | shares
