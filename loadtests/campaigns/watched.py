"""The signals and the generator's samples in the window of a step of load, for rules and tables."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy
import psutil

from loadtests.recording.rows import Sample
from loadtests.reporting.findings import Run, Signals


@dataclass(frozen=True)
class Watched:
    """The input of the rules: signals and the generator's samples from `begin` to `end`, and the size of the machine.

    `begin` and `end` are seconds since the epoch; `memory` is in bytes.
    """

    signals: Signals
    samples: Sequence[Sample]
    begin: float
    end: float
    cores: int
    memory: float

    @classmethod
    def of(cls, run: Run, begin: float, end: float) -> "Watched":
        """The window of a run on this machine."""
        cores, memory = psutil.cpu_count() or 1, psutil.virtual_memory().total
        return cls(run.signals, run.recording.samples, begin, end, cores, memory)

    def values(self, column: str) -> list[float]:
        """The values of a column inside the window."""
        return [row[column] for row in self._rows() if column in row]

    def mean(self, column: str) -> float | None:
        """The mean of a column inside the window; None if it has no values."""
        return _mean(self.values(column))

    def sum(self, *columns: str) -> float | None:
        """The sum of the means of columns; None if none of them has values."""
        means = [mean for mean in map(self.mean, columns) if mean is not None]
        return sum(means) if means else None

    def names(self, prefix: str) -> list[str]:
        """The names of the columns with a prefix, without the prefix."""
        return sorted({name.removeprefix(prefix) for row in self._rows() for name in row if name.startswith(prefix)})

    def cpu(self, program: str) -> float | None:
        """The mean CPU of a program in cores; None if it is unknown."""
        return self.sum(f"cpu.{program}.user", f"cpu.{program}.system")

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

    def growth(self, column: str) -> tuple[float, float] | None:
        """The means of the first and the last third of the window; None with fewer than six values."""
        values = self.values(column)
        third = len(values) // 3
        return (float(numpy.mean(values[:third])), float(numpy.mean(values[-third:]))) if third >= 2 else None

    def _rows(self) -> Iterable[dict[str, float]]:
        return (row for row in self.signals.rows if self.begin <= row["time"] <= self.end)


def _mean(values: Sequence[float]) -> float | None:
    return float(numpy.mean(values)) if values else None
