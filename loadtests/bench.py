"""Measure the speed of the service and compare in turns (python -m loadtests.bench, which `make bench` runs)."""

import argparse
import contextlib
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas

from cdb.env import ROOT, ConfigurationError
from cdb_rest.scenarios.definitions import SCENARIOS
from loadtests import report, sharing, usage, wrk
from loadtests.campaign import started_at
from loadtests.client import Client
from loadtests.content.expected import insert_body
from loadtests.harness import Harness, ratios
from loadtests.service import INTERRUPTED, Service, ServiceError, manage, prepare_process, running

CONNECTIONS = 8
COPIED = "payload_url, checksum, size, major_iov, minor_iov, major_iov_end, minor_iov_end, extra, payload_list_id"
BULK_ROWS = 100
BYTES = "SELECT pg_database_size(current_database())"
COMPILED = {"CDB_COMPILED_BYTES": str(10**11)}
PLAIN = {"CDB_COMPILED_BYTES": "0"}
Contenders = dict[str, Callable[[], dict[str, Any]]]
RUN, SERVE = "make run", "make serve"


class Bench(Harness):
    """The measurements. Each method that PARTS names returns (rounds, the compared figure, the contender compared with)."""

    quick = False
    scenario = ""

    def lookups(self) -> tuple[pandas.DataFrame, str, str]:
        """Lookups at random moments, by scenario, of plain, compiled and frozen tags, with and without nginx."""
        largest = "moderate" if self.quick else "worst-case"
        self.seed("tiny", "moderate", largest)
        compiled = self.settings.having(**COMPILED)
        for tag in dict.fromkeys(("tiny", "moderate", largest)):
            manage(compiled, "compile_tag", tag)
        with contextlib.ExitStack() as stack:
            services = {
                "plain": stack.enter_context(running(self.settings, **PLAIN)),
                RUN: stack.enter_context(running(compiled)),
                SERVE: stack.enter_context(running(compiled, command="serve")),
            }
            frozen = self._frozen(services[RUN], largest)
            manage(compiled, "compile_tag", frozen)
            contenders: Contenders = {}
            for tag in dict.fromkeys(("tiny", "moderate", largest, frozen)):
                for name, service in services.items():
                    contenders[f"{tag}, {name}"] = self._load(service, f"payloadiovs/?gtName={tag}")
            return self._rounds(contenders), "rate", f"tiny, {RUN}"

    def reads(self) -> tuple[pandas.DataFrame, str, str]:
        """What jobs ask before a lookup, compared with the lookup."""
        self.seed("tiny")
        with running(self.settings) as service:
            paths = ("globalTags", "gtPayloadLists/tiny", "gtstatus", "pt", "globalTag/tiny?light")
            contenders = {path: self._load(service, path, lookups=False) for path in paths}
            contenders["lookup"] = self._load(service, "payloadiovs/?gtName=tiny")
            return self._rounds(contenders), "rate", "lookup"

    def writes(self) -> tuple[pandas.DataFrame, str, str]:
        """Inserts of single rows and of hundreds, and a page of IOVs, in rows or requests per second."""
        self.seed("moderate")
        with running(self.settings) as service:
            client, tag = Client(service.host), f"bench-{started_at()}"
            client.call("POST", "gt", {"name": tag, "status": "unlocked"})
            kinds = [f"{tag}-{number}" for number in range(CONNECTIONS)]
            for kind in kinds:
                client.call("POST", "pt", {"name": kind})
            lists = [client.call("POST", "pl", {"payload_type": kind}).json["name"] for kind in kinds]
            for name in lists:
                client.call("PUT", "pl_attach", {"global_tag": tag, "payload_list": name})
            counts = [itertools.count() for _ in kinds]

            def row(worker: int) -> dict[str, Any]:
                number = next(counts[worker])
                return insert_body(tag, kinds[worker], number, (number, 0))

            def attached(worker: int) -> dict[str, Any]:
                body = row(worker)
                start = {"major_iov": body["since"][0], "minor_iov": 0, "payload_list": lists[worker]}
                return start | {name: body[name] for name in ("payload_url", "checksum", "size")}

            page = "piov?page=1&global_tag=moderate&sort=major_iov&order=desc"
            contenders: Contenders = {
                "insert": lambda: self._repeat(service, lambda worker: ("POST", "payload-iovs/insert", row(worker))),
                "bulk": lambda: self._repeat(
                    service,
                    lambda worker: ("POST", "bulk_piov", [attached(worker) for _ in range(BULK_ROWS)]),
                    rows=BULK_ROWS,
                ),
                "browse": lambda: self._repeat(service, lambda _: ("GET", page, None)),
            }
            return self._rounds(contenders), "rate", "insert"

    def sharing(self) -> tuple[pandas.DataFrame, str, dict[str, str]]:
        """Milliseconds of clones, and of lookups and windows in them by SQL, also after writes to their base."""
        writes, clones = (100, 10) if self.quick else (1000, 300)
        scenario = self.scenario or ("moderate" if self.quick else "worst-case")
        with self.database.sibling("bench_sharing") as database:
            settings = self.settings.having(DATABASE_URL=database.url, **PLAIN)
            manage(settings, "migrate", "--verbosity", "0")
            manage(settings, "seed_scenario", scenario, "--layout", "random", "--seed", "1")
            with running(settings) as service, database.connect() as connection:
                tag = sharing.Clones(service.host, database, scenario)
                contenders, tables = tag.writes(), []
                bases = dict.fromkeys(contenders, "clone")
                for when in ("", f", after {writes:,} writes"):
                    for payload_type in itertools.islice(itertools.cycle(tag.types), writes if when else 0):
                        tag.insert(scenario, payload_type)
                    for name, contender, base in tag.reads(connection, when):
                        contenders[name], bases[name] = contender, base
                    tables.append(self._rounds(contenders))
                    contenders = {}
                before = database.value(BYTES)
                seconds = sum(tag.make(f"clone-{number}") for number in range(clones)) / 1000
                print(f"\n{clones} clones took {seconds:.1f} s and {(database.value(BYTES) - before) / 1e6:.1f} MB.")
        return pandas.concat(tables, ignore_index=True), "ms", bases

    def seed_scenario(self) -> tuple[pandas.DataFrame, str, str]:
        """Seconds of seeding a new database, compared with a COPY of the same rows into the same table."""
        scenario = "moderate" if self.quick else "worst-case"
        with (
            self.database.sibling("bench_seed") as database,
            tempfile.NamedTemporaryFile(dir=self.data) as temporary,
        ):
            settings, file = self.settings.having(DATABASE_URL=database.url), Path(temporary.name)
            manage(settings, "migrate", "--verbosity", "0")

            def seeded() -> dict[str, Any]:
                done = manage(settings, "seed_scenario", scenario, "--layout", "random", "--reset", "--yes")
                return {"seconds": done.seconds, "peak_mb": done.peak_bytes / 1e6}

            def copied() -> dict[str, Any]:
                with database.connect() as connection, connection.cursor() as cursor:
                    with file.open("w") as target:
                        cursor.copy_expert(f'COPY (SELECT {COPIED} FROM "PayloadIOV" ORDER BY id) TO STDOUT', target)
                    cursor.execute('TRUNCATE "PayloadIOV"')
                    cursor.execute("CHECKPOINT")
                    begin = time.perf_counter()
                    with file.open() as source:
                        cursor.copy_expert(f'COPY "PayloadIOV" ({COPIED}) FROM STDIN', source)
                    return {"seconds": time.perf_counter() - begin}

            # The rows that are copied are those of the last seeding, so the order is fixed.
            rows = []
            for number in range(1, 2 if self.quick else 3):
                self.say(f"seeding and copying {scenario}, round {number}")
                rows += [{"what": "seed_scenario", "round": number, **seeded()}]
                rows += [{"what": "COPY", "round": number, **copied()}]
            return pandas.DataFrame(rows), "seconds", "COPY"

    def _rounds(self, contenders: Contenders) -> pandas.DataFrame:
        # So that every thread has its connection and plan, and the data are in memory.
        for run in contenders.values():
            run()
        return self.measure(contenders, 2 if self.quick else 8)

    def _load(self, service: Service, path: str, *, lookups: bool = True) -> Callable[[], dict[str, Any]]:
        # Other moments each time: nginx must not have them in its cache.
        seconds, seeds = 1 if self.quick else 3, itertools.count(1)

        def run() -> dict[str, Any]:
            with usage.measured(service=service.root(), postgres=self.postmaster()) as used:
                options = {"seconds": seconds, "connections": CONNECTIONS, "lookups": lookups, "seed": next(seeds)}
                found = wrk.measure(service.url(path), **options)
            if found["errors"]:
                raise ServiceError(f"{path}: {found['errors']} of {found['requests']} requests failed")
            cpu = {f"{name}_cpu_ms": used[name] * 1000 / found["requests"] for name in ("service", "postgres")}
            return {name: found[name] for name in ("rate", "p50", "p99", "max", "requests")} | cpu

        return run

    def _repeat(
        self, service: Service, request: Callable[[int], tuple[str, str, Any]], rows: int = 1
    ) -> dict[str, Any]:
        """Send requests on all connections for some seconds; the rate is that of rows."""
        deadline, times, errors = time.monotonic() + (1 if self.quick else 3), [], []

        def work(worker: int) -> None:
            client = Client(service.host)
            while time.monotonic() < deadline and not errors:
                response = client.request(*request(worker))
                times.append(response.ms)
                if response.status != 200:
                    errors.append(response.body[:300])

        begin = time.monotonic()
        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise ServiceError(f"a request failed: {errors[0]!r}")
        series = pandas.Series(times)
        rate = rows * len(times) / (time.monotonic() - begin)
        return {"rate": rate, "p50": series.median(), "p99": series.quantile(0.99), "max": series.max()}

    def _frozen(self, service: Service, source: str) -> str:
        """The name of a frozen clone of a tag."""
        client, name = Client(service.host), f"frozen-{source}"
        there = {tag["name"]: tag["status"] for tag in client.call("GET", "globalTags").json}
        if there.get(name) != "frozen":
            client.call("POST", f"cloneGlobalTag/{source}/{name}", also=(409,))
            client.call("PUT", f"gt_change_status/{name}/frozen")
        return name


PARTS = {
    "lookups": Bench.lookups,
    "reads": Bench.reads,
    "writes": Bench.writes,
    "sharing": Bench.sharing,
    "seed": Bench.seed_scenario,
}


def main(arguments: Sequence[str]) -> int:
    """Measure, print the ratios and write the report; 1 if a part could not be measured, otherwise 0 for any figures."""
    parser = argparse.ArgumentParser(prog="make bench ARGS='…'", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two minutes, small tags, few rounds")
    text = "measure this part only; may be repeated: " + ", ".join(PARTS)
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", help=text)
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "bench", help="directory of data and reports")
    text = "what the part sharing clones; default: worst-case, with --quick moderate"
    parser.add_argument("--scenario", choices=SCENARIOS, default="", help=text)
    options = parser.parse_args(arguments)
    prepare_process()
    bench = Bench(options.directory.resolve() / "data")
    bench.quick, bench.scenario = options.quick, options.scenario
    begin, parts = time.monotonic(), [name for name in PARTS if name in (options.only or PARTS)]
    tables: dict[str, pandas.DataFrame] = {}
    plots, code = {}, 0
    try:
        with bench.running_database():
            for name in parts:
                bench.say(f"part {parts.index(name) + 1} of {len(parts)}: {name}")
                try:
                    rounds, figure, base = PARTS[name](bench)
                except ServiceError as error:
                    sys.stderr.write(f"bench: {name}: {error}\n")
                    code = 1
                    continue
                compared = ratios(rounds, figure, base)
                print(
                    f"\n{' '.join(PARTS[name].__doc__.split())} {figure}:\n{compared.to_string(index=False)}\n",
                    flush=True,
                )
                ratio = rounds["what"].map(compared.set_index("what").iloc[:, -1])
                tables[name] = rounds.assign(part=name, ratio=ratio)
                plots[f"{name}: {figure}"] = report.lines(rounds, "what", figure)
    except (ServiceError, ConfigurationError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    except KeyboardInterrupt:
        code = INTERRUPTED
    if tables:
        rows = pandas.concat(tables.values(), ignore_index=True)
        texts = [f"{name}: {' '.join(PARTS[name].__doc__.split())}" for name in tables]
        output = options.directory.resolve() / started_at()
        print(report.write(output, "Bench", rows, texts=texts, plots=plots))
    bench.say(f"{(time.monotonic() - begin) / 60:.1f} min")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
