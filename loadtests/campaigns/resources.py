"""The rules that decide from the signals of a step of load which resource ran out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy
import psutil

from loadtests.recording.rows import Sample
from loadtests.reporting.figures import ratio
from loadtests.reporting.result import Signals

# The share of a core, or of all cores, that counts as exhausted.
BUSY = 0.9
# The share of all cores that programs outside of the test may use.
OTHER_PROGRAMS = 0.2
# The share of a limit on connections or threads that counts as exhausted.
AT_LIMIT = 0.95
QUEUE_MS = 20.0
MEMORY_FULL = 0.95
GROWN = 1.5
LEAST_GROWN = {"memory": 200e6, "files": 200.0}

NOTHING = "nothing that was watched"


@dataclass(frozen=True)
class Watched:
    """The input of the rules: signals and the generator's samples from `begin` to `end`, and the size of this machine.

    `begin` and `end` are seconds since the epoch; `memory` is in bytes.
    """

    signals: Signals
    samples: Sequence[Sample]
    begin: float
    end: float
    cores: int = field(default_factory=lambda: psutil.cpu_count() or 1)
    memory: float = field(default_factory=lambda: psutil.virtual_memory().total)

    @property
    def rows(self) -> list[dict[str, float]]:
        """The signals inside the window."""
        return [row for row in self.signals.rows if self.begin <= row["time"] <= self.end]

    def values(self, column: str) -> list[float]:
        """The values of a column inside the window."""
        return [row[column] for row in self.rows if column in row]

    def mean(self, *columns: str) -> float | None:
        """The sum of the means of columns inside the window; None if none of them has values."""
        means = [float(numpy.mean(values)) for values in map(self.values, columns) if values]
        return sum(means) if means else None

    def names(self, prefix: str) -> list[str]:
        """The names of the columns with a prefix, without the prefix."""
        return sorted({name.removeprefix(prefix) for row in self.rows for name in row if name.startswith(prefix)})

    def cpu(self, program: str) -> float | None:
        """The mean CPU of a program in cores; None if it is unknown."""
        return self.mean(f"cpu.{program}.user", f"cpu.{program}.system")

    def programs(self) -> dict[str, float]:
        """The mean CPU by program in cores, in descending order, without idle programs."""
        names = {name.rpartition(".")[0] for name in self.names("cpu.") if name.endswith((".user", ".system"))}
        used = {name: self.cpu(name) or 0.0 for name in names}
        return {name: cores for name, cores in sorted(used.items(), key=lambda item: -item[1]) if cores >= 0.005}

    def generator(self) -> float | None:
        """An estimate of the CPU of the busiest generator process in cores; None without samples.

        It is the upper quartile over all seconds of all processes, because samples do not name their process.
        """
        cores = [sample.cpu for sample in self.samples if self.begin <= sample.time <= self.end]
        return float(numpy.percentile(cores, 75)) if cores else None

    def growth(self, kind: str) -> tuple[float | None, str]:
        """How much the program of the service that grew most did so, and its name; None with fewer than six values.

        It is the mean of the last third of the window ÷ that of the first third.
        """
        grown: dict[str, float] = {}
        for name in self.names(f"{kind}."):
            values = self.values(f"{kind}.{name}")
            third = len(values) // 3
            if third >= 2 and name not in ("machine", "generator", "rig"):
                first, last = float(numpy.mean(values[:third])), float(numpy.mean(values[-third:]))
                grown[name] = last / first if first and last - first >= LEAST_GROWN[kind] else 1.0
        most = max(grown, key=grown.__getitem__, default="")
        return grown.get(most), most


@dataclass(frozen=True)
class Evidence:
    """The evaluation of one rule.

    The resource ran out if `measured` (None: unknown) reaches `bound` and the rule `applies`. A `void` rule
    means that the test and not the service reached its limit.
    """

    resource: str
    measured: float | None
    bound: float
    unit: str
    remark: str = ""
    void: bool = False
    applies: bool = True

    @property
    def ran_out(self) -> bool:
        """Whether the value has reached the bound, and the rule applies."""
        return self.applies and self.measured is not None and self.measured >= self.bound


@dataclass(frozen=True)
class Verdict:
    """The resource that ran out, and the evidence of all rules in their order."""

    resource: str
    remark: str
    void: bool
    evidence: tuple[Evidence, ...]


def evaluate(watched: Watched) -> tuple[Evidence, ...]:
    """The evaluation of all rules.

    Causes come before consequences: if processors are exhausted, threads and connections are all in use as well.
    """
    mean, cpu, cores = watched.mean, watched.cpu, watched.cores
    programs = watched.programs()
    most = next(iter(programs), "")
    processors = f"the machine's processors{most and f', most of it {most}'}"
    used = ", ".join(f"{name} {used:.2f}" for name, used in programs.items())
    waits = {name: mean(f"waits.{name}") or 0.0 for name in watched.names("waits.")}
    locks = {name: count for name, count in waits.items() if name.startswith(("Lock:", "LWLock:", "BufferPin:"))}
    # Locks matter if at least one session waits for another on average.
    locked = ratio(sum(locks.values()), mean("connections.active")), max(locks, key=locks.__getitem__, default="")
    reads = sum(count for name, count in waits.items() if name.startswith("IO:"))
    # The master of gunicorn does not serve requests.
    workers = (mean("processes.gunicorn-lookups") or 1) - 1
    # Clients wait only while all connections of their pool are in use.
    pool = mean(*(f"pool_size.{name}" for name in watched.names("pool_size."))) or 0.0
    pooled = f"{mean('pgbouncer.servers.active') or 0.0:.0f} of {pool:.0f} connections in use"
    connections = mean(*(f"connections.{name}" for name in watched.names("connections.")))
    threads = ratio(mean("in_progress.lookups"), mean("thread_limit.lookups"))
    # Threads matter if requests wait for one or are refused.
    queued, refused = mean("queue_ms.lookups") or 0.0, mean("refusals.lookups") or 0.0
    is_queue, queue = (
        queued >= QUEUE_MS or refused > 0,
        f"requests waited {queued:.0f} ms for one, {refused:.1f}/s were refused",
    )
    memory, files = watched.growth("memory"), watched.growth("files")
    late, disturbed = (
        "it would handle responses late: use --processes, or other machines",
        "programs that are not part of the test: measure again without them",
    )
    more_workers = "a Python process uses one core: raise CDB_WORKERS"
    # For other programs means do not show whether they used a processor when it was needed: so little is too much.
    return (
        Evidence("the generator, not the service", watched.generator(), BUSY, "of one core", late, void=True),
        Evidence(
            "other programs on this machine",
            ratio(cpu("other"), cores),
            OTHER_PROGRAMS,
            "of all cores",
            disturbed,
            void=True,
        ),
        Evidence(processors, ratio(mean("cpu.machine"), cores), BUSY, "of all cores", f"cores: {used}"),
        Evidence(
            "locks in PostgreSQL",
            locked[0],
            0.5,
            "of its sessions at work",
            locked[1],
            applies=sum(locks.values()) >= 1,
        ),
        Evidence("the one core of PgBouncer", cpu("pgbouncer"), BUSY, "of one core"),
        Evidence(
            "gunicorn's processes", ratio(cpu("gunicorn-lookups"), workers), BUSY, "of one core each", more_workers
        ),
        Evidence("the disk", mean("disk.busy"), BUSY, "of the time", f"{reads:.1f} sessions wait for it"),
        Evidence(
            "PgBouncer's pool of connections", mean("pgbouncer.clients.waiting"), 1.0, "clients wait for one", pooled
        ),
        Evidence(
            "PostgreSQL's connections", ratio(connections, mean("connection_limit")), AT_LIMIT, "of max_connections"
        ),
        Evidence("gunicorn's threads", threads, AT_LIMIT, "of CDB_THREADS", queue, applies=is_queue),
        Evidence("memory", ratio(mean("memory.machine"), watched.memory), MEMORY_FULL, "of the machine's"),
        Evidence("memory that grows", memory[0], GROWN, "times as much as before", memory[1]),
        Evidence("descriptors that grow", files[0], GROWN, "times as much as before", files[1]),
    )


def decide(watched: Watched, *, only_late: bool = False) -> Verdict:
    """The verdict of the first rule whose resource ran out.

    `only_late` means that the rate was not sustained only because the generator was late; without an exhausted
    resource the verdict is then void.
    """
    evidence = evaluate(watched)
    for one in evidence:
        if one.ran_out:
            return Verdict(one.resource, one.remark, one.void, evidence)
    if only_late:
        return Verdict("the generator, not the service", "it was late, with processors to spare", True, evidence)
    return Verdict(NOTHING, "", False, evidence)
