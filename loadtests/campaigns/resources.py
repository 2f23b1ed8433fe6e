"""The signals of a step of load inside its window, and the rules that decide from them which resource is exhausted."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy
import psutil

from loadtests.recording.rows import Sample
from loadtests.reporting.figures import ratio
from loadtests.reporting.result import Signals

# The share of a core, of all cores or of the time that counts as exhausted.
BUSY = 0.9
# The share of PostgreSQL's active sessions that wait for locks.
WAITING = 0.5
# The share of all cores that programs outside of the test may use.
OTHER_PROGRAMS = 0.2
QUEUE_MS = 20.0
MEMORY_FULL = 0.95
GROWN = 1.5
# A program that uses less of a core is idle.
IDLE_CORES = 0.02
# A program has grown if its memory, in bytes, or its number of open files is larger by so much.
LEAST_GROWN = {"memory": 200e6, "files": 200.0}

GENERATOR, NOTHING = "the generator, not the service", "nothing that was watched"


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

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """The values of each column inside the window."""
        found = defaultdict(list)
        for row in self.signals.rows:
            if self.begin <= row["time"] <= self.end:
                for column, value in row.items():
                    found[column].append(value)
        return dict(found)

    def mean(self, column: str) -> float | None:
        """The mean of a column; None without values."""
        return float(numpy.mean(self.columns[column])) if column in self.columns else None

    def means(self, prefix: str) -> dict[str, float]:
        """The means of all columns with a prefix, by the rest of their names, in descending order.

        Samples without one of the columns, such as a wait event that no session had, count as 0.
        """
        found = {name.removeprefix(prefix): values for name, values in self.columns.items() if name.startswith(prefix)}
        count = max(map(len, found.values()), default=0)
        means = {name: sum(values) / count for name, values in found.items()}
        return dict(sorted(means.items(), key=lambda item: -item[1]))

    def programs(self) -> dict[str, float]:
        """The mean CPU by program in cores, in descending order, without idle programs."""
        return {name: cores for name, cores in self.means("cpu.").items() if cores >= IDLE_CORES and name != "machine"}

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
        for name in self.means(f"{kind}."):
            values = self.columns[f"{kind}.{name}"]
            if len(values) >= 6 and name not in ("machine", "generator", "harness"):
                first, _, last = (float(part.mean()) for part in numpy.array_split(values, 3))
                grown[name] = last / first if first and last - first >= LEAST_GROWN[kind] else 1.0
        most = max(grown, key=grown.__getitem__, default="")
        return grown.get(most), most


@dataclass(frozen=True)
class Evidence:
    """The evaluation of one rule.

    The resource is exhausted if `measured` (None: unknown) reaches `bound` and the rule `applies`. A `void` rule
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
    def is_exhausted(self) -> bool:
        """Whether the value has reached the bound, and the rule applies."""
        return self.applies and self.measured is not None and self.measured >= self.bound


def evaluate(watched: Watched) -> Iterator[Evidence]:
    """The evaluation of all rules.

    Causes come before consequences: if processors are exhausted, threads and connections are all in use as well.
    """
    remark = "it would handle responses late: use --processes, or other machines"
    yield Evidence(GENERATOR, watched.generator(), BUSY, "of one core", remark, void=True)

    # The bound is low, because means do not show whether these programs used a processor when it was needed.
    used = ratio(watched.mean("cpu.other"), watched.cores)
    remark = "programs that are not part of the test: measure again without them"
    yield Evidence("other programs on this machine", used, OTHER_PROGRAMS, "of all cores", remark, void=True)

    programs = watched.programs()
    most = f", most of it {next(iter(programs))}" if programs else ""
    remark = f"cores: {', '.join(f'{name} {cores:.2f}' for name, cores in programs.items())}"
    used = ratio(watched.mean("cpu.machine"), watched.cores)
    yield Evidence(f"the machine's processors{most}", used, BUSY, "of all cores", remark)

    # Locks matter if at least one session waits for another on average.
    waits = watched.means("waits.")
    locks = {name: count for name, count in waits.items() if name.startswith(("Lock:", "LWLock:", "BufferPin:"))}
    waiting, most = sum(locks.values()), next(iter(locks), "")
    share = ratio(waiting, watched.mean("connections.active"))
    yield Evidence("locks in PostgreSQL", share, WAITING, "of its sessions at work", most, applies=waiting >= 1)

    # The main process of granian does not serve requests.
    used = ratio(watched.mean("cpu.granian"), (watched.mean("processes.granian") or 1) - 1)
    remark = "a Python process uses one core: raise CDB_WORKERS"
    yield Evidence("granian's processes", used, BUSY, "of one core each", remark)

    reads = sum(count for name, count in waits.items() if name.startswith("IO:"))
    yield Evidence("the disk", watched.mean("disk.busy"), BUSY, "of the time", f"{reads:.1f} sessions wait for it")

    remark = "raise CDB_THREADS"
    yield Evidence("threads of the service", watched.mean("queue_ms"), QUEUE_MS, "ms of waiting for one", remark)

    yield Evidence("memory", ratio(watched.mean("memory.machine"), watched.memory), MEMORY_FULL, "of the machine's")

    for resource, kind in (("memory that grows", "memory"), ("descriptors that grow", "files")):
        grown, program = watched.growth(kind)
        yield Evidence(resource, grown, GROWN, "times as much as before", program)


def decide(watched: Watched, *, only_late: bool = False) -> Evidence:
    """The verdict: the first rule whose resource is exhausted.

    `only_late` means that the rate was not sustained only because the generator was late; without an exhausted
    resource the verdict is then void.
    """
    late = Evidence(GENERATOR, None, BUSY, "of one core", "it was late, with processors to spare", void=True)
    otherwise = late if only_late else Evidence(NOTHING, None, BUSY, "")
    return next((one for one in evaluate(watched) if one.is_exhausted), otherwise)
