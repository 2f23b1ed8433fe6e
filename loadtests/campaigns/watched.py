"""The signals of a step of load inside its window, from which the rules of `resources` decide."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy
import psutil

from loadtests.recording.rows import Sample
from loadtests.reporting.result import Signals

# A program has grown if its memory, in bytes, or its number of open files is larger by so much.
LEAST_GROWN = {"memory": 200e6, "files": 200.0}


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

    def sum(self, prefix: str) -> float | None:
        """The sum of the means of all columns with a prefix; None without any."""
        return self.mean(*(prefix + name for name in self.names(prefix)))

    def waits(self) -> dict[str, float]:
        """The mean number of PostgreSQL's active sessions by what they wait for."""
        return {name: self.mean(f"waits.{name}") or 0.0 for name in self.names("waits.")}

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
            if third >= 2 and name not in ("machine", "generator", "harness"):
                first, last = float(numpy.mean(values[:third])), float(numpy.mean(values[-third:]))
                grown[name] = last / first if first and last - first >= LEAST_GROWN[kind] else 1.0
        most = max(grown, key=grown.__getitem__, default="")
        return grown.get(most), most
