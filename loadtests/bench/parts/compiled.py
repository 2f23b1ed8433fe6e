"""Lookups in compiled tags, compared with the same lookups without them and with the LATERAL query of the load study.

The study is described in docs/load-tests.md. Two services on the same database are measured alternately, one of which has
compiled tags (docs/compiled-tags.md). All lookups are at random moments. First nothing has changed since the tag was
compiled; then one interval was inserted into 1 %, 10 % and all of the payload lists; at last the tag is frozen, so that the
service does not ask the database. The tags are compiled by the command only: the service would compile them again during the
measurement. Both services must give the same responses, byte for byte.
"""

import contextlib
import fcntl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from loadtests import usage
from loadtests.bench.harness import COSTS, Harness, columns
from loadtests.bench.parts.floor import create_study_table
from loadtests.client import Client, lookups
from loadtests.database import text_of
from loadtests.reporting import plots
from loadtests.reporting.figures import ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, Settings, manage, running, start, stop

TITLE = "Compiled tags"
NAME = "bench_compiled"
CONNECTIONS = 8
COMPARED = 100
SMALL = "tiny"
# More than all compiled tags of this part together.
BUDGET = str(10**11)
SHARES = {1: 3.0, 10: 2.0, 100: 0.95}
STUDY = {"study: LATERAL, planned each time": "simple", "study: LATERAL, prepared": "prepared"}
MIB = 2**20


@dataclass(frozen=True)
class Services:
    """The two services on the same database, and their settings."""

    settings: Settings
    plain: Service
    compiled: Service

    def each(self, *tags: str) -> list[tuple[str, Service, str]]:
        """Name, service and tag of each combination."""
        return [
            (f"{tag}, {name}", service, tag)
            for tag in tags
            for name, service in (("compiled", self.compiled), ("not compiled", self.plain))
        ]


def measure(harness: Harness, result: Result) -> None:
    """Measure an unchanged tag, the same tag with more and more changes, and frozen tags."""
    database = harness.database.create_sibling(NAME)
    try:
        with _services(harness, database.url) as services:
            _cost(harness, result, services)
            _unchanged(harness, result, services)
            _changed(harness, result, services)
            _frozen(harness, result, services)
            _memory(result, services)
    finally:
        harness.database.drop_sibling(NAME)
    shown = columns(f"phase what round responses_per_s p50_ms p99_ms errors {COSTS}")
    rounds = [row for row in result.raw if "round" in row]
    result.tables.append(Table.of(f"Random moments, {CONNECTIONS} connections", rounds, shown))


@contextlib.contextmanager
def _services(harness: Harness, url: str) -> Iterator[Services]:
    directory = harness.data / "compiled"
    settings = harness.settings.with_database(url)
    settings = replace(settings, extra=settings.extra | {"CDB_COMPILED_DIR": str(directory)})
    manage(settings, "migrate", "--verbosity", "0")
    for tag in {SMALL, harness.sizes.largest}:
        harness.say(f"compiled: seeding {tag}")
        manage(settings, "seed_scenario", tag, "--layout", "random")
    manage(settings, "compiled", "--drop")
    with (
        _without_keeper(directory),
        running(settings) as plain,
        running(settings, CDB_COMPILED_BYTES=BUDGET) as compiled,
    ):
        yield Services(settings, plain, compiled)
    manage(settings, "compiled", "--drop")


@contextlib.contextmanager
def _without_keeper(directory: Path) -> Iterator[None]:
    """Hold the lock of the process that chooses what to compile, so that no service becomes that process."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cost(harness: Harness, result: Result, services: Services) -> None:
    """The cost of compiling the largest tag, alone and in the background beside lookups in it."""
    tag = harness.sizes.largest
    harness.say(f"compiled: compiling {tag}")
    with usage.measured(None, harness.postmaster()) as used:
        done = manage(services.settings, "compile_tag", tag)
    cpu = done.cpu_seconds + used.postgres
    row = {"what": f"compile_tag {tag}", "seconds": done.seconds, "command_cpu_s": done.cpu_seconds}
    row |= {"postgres_cpu_s": used.postgres, "peak_mib": done.peak_bytes / MIB}
    result.raw.append(row)
    headings = {"command_cpu_s": "command CPU s", "postgres_cpu_s": "PostgreSQL CPU s", "peak_mib": "peak MiB"}
    result.tables.append(
        Table.of("Compiling", [row], columns("what seconds command_cpu_s postgres_cpu_s peak_mib", **headings))
    )
    result.targets.append(Target(f"compiling {tag}: CPU", cpu, 20, at_most=True, unit="s"))
    manage(services.settings, "compiled", "--drop")
    harness.warm_up(services.plain, tag)

    def compile_slowly(over: threading.Event) -> None:
        program = [sys.executable, "manage.py", "compile_tag", tag, "--background"]
        # It ends when its input is closed.
        process = start(program, services.settings.environment(), subprocess.DEVNULL, stdin=subprocess.PIPE)
        while process.poll() is None and not over.wait(0.1):
            pass
        stop(process)
        process.communicate()

    table, rows = harness.lookups_beside(
        services.plain, tag, "compile_tag in the background", harness.sizes.look_seconds, compile_slowly
    )
    result.tables.append(table)
    result.raw += rows
    alone, beside = (one["responses_per_s"] for one in rows)
    result.targets.append(Target("lookups beside a compilation ÷ without", beside / alone, 0.9, at_most=False))


def _compile(harness: Harness, services: Services, *tags: str) -> None:
    for tag in tags:
        manage(services.settings, "compile_tag", tag)
        harness.warm_up(services.compiled, tag)


def _unchanged(harness: Harness, result: Result, services: Services) -> None:
    tag = harness.sizes.largest
    _compile(harness, services, *{SMALL, tag})
    study = _study(harness)
    rows = _rounds(harness, result, services, "unchanged", services.each(*dict.fromkeys((SMALL, tag))), study)
    found = spreads(rows, "what", "responses_per_s")
    best = max(STUDY, key=lambda name: found[name].median)
    result.targets += [
        _target(found, f"{tag}, compiled", f"{SMALL}, compiled", 0.75, "unchanged"),
        _target(found, f"{tag}, compiled", best, 2.5, "unchanged"),
    ]
    title = "Nothing has changed: responses a second, medians of rounds"
    result.plots.append(plots.bars(title, found, x="responses/s"))


def _changed(harness: Harness, result: Result, services: Services) -> None:
    tag = harness.sizes.largest
    changed = 0
    with Client(services.plain.host) as client:
        kinds = sorted(client.call("GET", f"gtPayloadLists/{tag}").json)
        for share, bound in SHARES.items():
            wanted = max(1, len(kinds) * share // 100)
            for number, kind in enumerate(kinds[changed:wanted], changed):
                place = {"global_tag": tag, "payload_type": kind, "payload_url": f"bench/{kind}", "checksum": "00"}
                body = place | {"since": [number * 1000, 1], "until": "next"}
                client.call("POST", "payload-iovs/insert", body)
            changed = wanted
            phase = f"{share} % of lists changed"
            rows = _rounds(harness, result, services, phase, services.each(tag))
            found = spreads(rows, "what", "responses_per_s")
            result.targets.append(_target(found, f"{tag}, compiled", f"{tag}, not compiled", bound, phase))


def _frozen(harness: Harness, result: Result, services: Services) -> None:
    tags = list(dict.fromkeys((SMALL, harness.sizes.largest)))
    with Client(services.plain.host) as client:
        for tag in tags:
            for status in ("locked", "frozen"):
                client.call("PUT", f"gt_change_status/{tag}/{status}")
    _compile(harness, services, *tags)
    rows = _rounds(harness, result, services, "frozen", services.each(*tags))
    found = spreads(rows, "what", "responses_per_s")
    largest = f"{harness.sizes.largest}, compiled"
    result.targets.append(_target(found, largest, f"{SMALL}, compiled", 0.8, "frozen"))


def _study(harness: Harness) -> dict[str, tuple[str, int]]:
    """The modes of the study's query in pgbench, each with its best number of clients."""
    harness.seed(harness.sizes.largest)
    create_study_table(harness)
    found = {}
    for name, mode in STUDY.items():
        harness.say(f"compiled: best number of clients for {name}")
        rates = {
            clients: _study_load(harness, mode, clients, harness.sizes.search_seconds, 0)["responses_per_s"]
            for clients in harness.sizes.client_counts
        }
        found[name] = mode, max(rates, key=lambda clients: rates[clients])
    return found


def _study_load(harness: Harness, mode: str, clients: int, seconds: int, seed: int) -> dict[str, Any]:
    script = text_of("study_lookup").replace("{tag}", harness.sizes.largest)
    return harness.transactions(script, clients=clients, seconds=seconds, mode=mode, seed=seed)


def _rounds(
    harness: Harness,
    result: Result,
    services: Services,
    phase: str,
    contenders: Sequence[tuple[str, Service, str]],
    study: dict[str, tuple[str, int]] | None = None,
) -> list[dict[str, Any]]:
    """Compare the responses of the services, then measure all contenders in rounds; returns the rows."""
    for tag in dict.fromkeys(tag for _, _, tag in contenders):
        _check_same(services, tag)
    by_name, rows, seconds = (
        {name: (service, tag) for name, service, tag in contenders},
        [],
        harness.sizes.floor_seconds,
    )
    for number, name in harness.rounds(f"compiled: {phase}", [*by_name, *(study or {})]):
        if name in by_name:
            service, tag = by_name[name]
            url = service.lookup_url(tag)
            row = harness.load(service, url, connections=CONNECTIONS, seconds=seconds, seed=number)
        else:
            mode, clients = (study or {})[name]
            row = _study_load(harness, mode, clients, seconds, number)
        rows.append({"phase": phase, "what": name, "round": number, **row})
    result.raw += rows
    return rows


def _check_same(services: Services, tag: str) -> None:
    """Raises `AssertionError` if the services give different responses."""
    bodies = []
    for service in (services.plain, services.compiled):
        with Client(service.host) as client:
            found = lookups(client, tag, "random", calls=COMPARED, seconds=60, seed=0)
            bodies.append([(one.status, one.body) for one in found])
    if bodies[0] != bodies[1]:
        raise AssertionError(f"lookups in {tag} have other responses with compiled tags")


def _memory(result: Result, services: Services) -> None:
    """The private memory of the workers, without the memory-mapped files."""
    plain, compiled = (
        max(_private_bytes(worker) for worker in service.gunicorn().children()) / MIB
        for service in (services.plain, services.compiled)
    )
    rows = [{"what": "not compiled", "mib": plain}, {"what": "compiled", "mib": compiled}]
    result.raw += rows
    result.tables.append(Table.of("Private memory of the largest worker", rows, {"what": "", "mib": "MiB"}))
    result.targets.append(
        Target("memory of a worker with compiled tags", compiled - plain, 20, at_most=True, unit="MiB")
    )


def _private_bytes(process: psutil.Process) -> int:
    memory = process.memory_info()
    private: int = memory.rss - memory.shared
    return private


def _target(found: Any, name: str, other: str, bound: float, phase: str) -> Target:
    return Target(f"{name} ÷ {other} ({phase})", ratios_to(found, other)[name], bound, at_most=False)
