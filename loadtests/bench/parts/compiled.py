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
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from loadtests import usage
from loadtests.bench.harness import COSTS, Harness
from loadtests.bench.parts.floor import STUDY, Run, over_http, search, study_runs
from loadtests.client import Client, lookups
from loadtests.harness import write_tags
from loadtests.reporting import plots
from loadtests.reporting.figures import Spread, ratios_to, spreads
from loadtests.reporting.result import Result, Table, Target
from loadtests.service import Service, Settings, manage, running, start, stop

TITLE = "Compiled tags"
CONNECTIONS = 8
COMPARED = 100
SMALL = "tiny"
# More than all compiled tags of a part together.
BUDGET = str(10**11)
SHARES = {1: 3.0, 10: 2.0, 100: 0.95}
MIB = 2**20


class Services(NamedTuple):
    """The two services on the same database."""

    plain: Service
    compiled: Service


def measure(harness: Harness, result: Result) -> None:
    """Measure an unchanged tag, the same tag with more and more changes, and frozen tags."""
    with (
        harness.empty_database("bench_compiled") as (_, settings),
        _services(harness, settings) as services,
    ):
        _cost(harness, result, services)
        _unchanged(harness, result, services)
        _changed(harness, result, services)
        _frozen(harness, result, services)
        _memory(result, services)
    keys = f"phase what round responses_per_s p50_ms p99_ms errors {COSTS}"
    rounds = [row for row in result.raw if "round" in row]
    result.tables.append(Table.of(f"Random moments, {CONNECTIONS} connections", rounds, keys))


@contextlib.contextmanager
def compiled_by_command(harness: Harness, settings: Settings) -> Iterator[Settings]:
    """The settings of a service with compiled tags inside the block, which only the command compiles."""
    directory = harness.data / "compiled"
    directory.mkdir(parents=True, exist_ok=True)
    settings = settings.having(CDB_COMPILED_DIR=str(directory), CDB_COMPILED_BYTES=BUDGET)
    manage(settings, "compiled", "--drop")
    with (directory / "lock").open("w") as lock:
        # The lock of the process that chooses what to compile: no service becomes that process.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield settings
    manage(settings, "compiled", "--drop")


@contextlib.contextmanager
def _services(harness: Harness, settings: Settings) -> Iterator[Services]:
    harness.say("compiled: seeding")
    write_tags(settings, *{SMALL, harness.sizes.largest})
    with (
        compiled_by_command(harness, settings) as settings,
        running(settings, CDB_COMPILED_BYTES="0") as plain,
        running(settings) as compiled,
    ):
        yield Services(plain, compiled)


def _cost(harness: Harness, result: Result, services: Services) -> None:
    """The cost of compiling the largest tag, alone and in the background beside lookups in it."""
    tag = harness.sizes.largest
    harness.say(f"compiled: compiling {tag}")
    with usage.measured(postgres=harness.postmaster()) as used:
        done = manage(services.plain.settings, "compile_tag", tag)
    cpu = done.cpu_seconds + used["postgres"]
    row = {"what": f"compile_tag {tag}", "seconds": done.seconds, "command_cpu_s": done.cpu_seconds}
    row |= {"postgres_cpu_s": used["postgres"], "peak_mib": done.peak_bytes / MIB}
    result.raw.append(row)
    headings = {"command_cpu_s": "command CPU s", "postgres_cpu_s": "PostgreSQL CPU s", "peak_mib": "peak MiB"}
    result.tables.append(Table.of("Compiling", [row], "what seconds command_cpu_s postgres_cpu_s peak_mib", **headings))
    result.targets.append(Target(f"compiling {tag}: CPU", cpu, 20, at_most=True, unit="s"))
    manage(services.plain.settings, "compiled", "--drop")
    harness.warm_up(services.plain, tag)

    def compile_slowly(over: threading.Event) -> None:
        program = [sys.executable, "manage.py", "compile_tag", tag, "--background"]
        # It ends when its input is closed.
        process = start(program, services.plain.settings.environment(), subprocess.DEVNULL, stdin=subprocess.PIPE)
        while process.poll() is None and not over.wait(0.1):
            pass
        stop(process)
        process.communicate()

    what, seconds = "compile_tag in the background", harness.sizes.look_seconds
    rows = harness.lookups_beside(result, services.plain, tag, what, seconds, compile_slowly)
    alone, beside = (one["responses_per_s"] for one in rows)
    result.targets.append(Target("lookups beside a compilation ÷ without", beside / alone, 0.9, at_most=False))


def _compile(harness: Harness, services: Services, *tags: str) -> None:
    for tag in tags:
        manage(services.plain.settings, "compile_tag", tag)
        harness.warm_up(services.compiled, tag)


def _unchanged(harness: Harness, result: Result, services: Services) -> None:
    tag = harness.sizes.largest
    _compile(harness, services, *{SMALL, tag})
    harness.seed(tag)
    counts = harness.sizes.client_counts
    study = {name: (run, search(harness, name, run, counts)[0]) for name, run in study_runs(harness).items()}
    found = _rounds(harness, result, services, "unchanged", dict.fromkeys((SMALL, tag)), study)
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
            found = _rounds(harness, result, services, phase, [tag])
            result.targets.append(_target(found, f"{tag}, compiled", f"{tag}, not compiled", bound, phase))


def _frozen(harness: Harness, result: Result, services: Services) -> None:
    tags = list(dict.fromkeys((SMALL, harness.sizes.largest)))
    with Client(services.plain.host) as client:
        for tag in tags:
            for status in ("locked", "frozen"):
                client.call("PUT", f"gt_change_status/{tag}/{status}")
    _compile(harness, services, *tags)
    found = _rounds(harness, result, services, "frozen", tags)
    largest = f"{harness.sizes.largest}, compiled"
    result.targets.append(_target(found, largest, f"{SMALL}, compiled", 0.8, "frozen"))


def _rounds(
    harness: Harness,
    result: Result,
    services: Services,
    phase: str,
    tags: Iterable[str],
    study: Mapping[str, tuple[Run, int]] | None = None,
) -> dict[str, Spread]:
    """Measure lookups in both services and in the study's table in rounds; returns the responses per second by name."""
    contenders, rows = dict(study or {}), []
    for tag in tags:
        _check_same(services, tag)
        contenders[f"{tag}, compiled"] = over_http(harness, services.compiled, tag), CONNECTIONS
        contenders[f"{tag}, not compiled"] = over_http(harness, services.plain, tag), CONNECTIONS
    for number, name in harness.rounds(f"compiled: {phase}", list(contenders)):
        run, clients = contenders[name]
        row = run(clients, harness.sizes.seconds, number)
        rows.append({"phase": phase, "what": name, "round": number, **row})
    result.raw += rows
    return spreads(rows, "what", "responses_per_s")


def _check_same(services: Services, tag: str) -> None:
    """Raises `AssertionError` if the services give different responses."""
    plain, compiled = (lookups(Client(one.host), tag, calls=COMPARED, seconds=60, seed=0) for one in services)
    if [(one.status, one.body) for one in plain] != [(one.status, one.body) for one in compiled]:
        raise AssertionError(f"lookups in {tag} have other responses with compiled tags")


def _memory(result: Result, services: Services) -> None:
    """The private memory of the workers, without the memory-mapped files."""
    rows = []
    for what, service in (("not compiled", services.plain), ("compiled", services.compiled)):
        memory = [worker.memory_info() for worker in service.program("granian").children()]
        rows.append({"what": what, "mib": max(one.rss - one.shared for one in memory) / MIB})
    result.raw += rows
    result.tables.append(Table.of("Private memory of the largest worker", rows, {"what": "", "mib": "MiB"}))
    more = rows[1]["mib"] - rows[0]["mib"]
    result.targets.append(Target("memory of a worker with compiled tags", more, 20, at_most=True, unit="MiB"))


def _target(found: dict[str, Spread], name: str, other: str, bound: float, phase: str) -> Target:
    return Target(f"{name} ÷ {other} ({phase})", ratios_to(found, other)[name], bound, at_most=False)
