"""What was seen of a step of load, for rules and tables: the signals and the generator, in a window."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy
import psutil

from loadtests.recording.rows import Sample
from loadtests.reporting.findings import Run, Signals


@dataclass(frozen=True)
class Watched:
    """What the rules are given: signals and the generator's samples, from `begin` to `end` (seconds since the epoch), and the
    machine's cores and memory (bytes)."""

    signals: Signals
    samples: Sequence[Sample]
    begin: float
    end: float
    cores: int
    memory: float

    @classmethod
    def of(cls, run: Run, begin: float, end: float) -> "Watched":
        """A run on this machine."""
        cores, memory = psutil.cpu_count() or 1, psutil.virtual_memory().total
        return cls(run.signals, run.recording.samples, begin, end, cores, memory)

    def values(self, column: str) -> list[float]:
        """A column inside the window."""
        return [row[column] for row in self._rows() if column in row]

    def mean(self, column: str) -> float | None:
        """Of a column inside the window; None where it is not there."""
        return _mean(self.values(column))

    def sum(self, *columns: str) -> float | None:
        """Of the means of columns; None where none of them is there."""
        means = [mean for mean in map(self.mean, columns) if mean is not None]
        return sum(means) if means else None

    def names(self, prefix: str) -> list[str]:
        """What follows a prefix in the names of columns."""
        return sorted({name.removeprefix(prefix) for row in self._rows() for name in row if name.startswith(prefix)})

    def cpu(self, program: str) -> float | None:
        """Cores of a program."""
        return self.sum(f"cpu.{program}.user", f"cpu.{program}.system")

    def programs(self) -> dict[str, float]:
        """Cores by program, most first, and without those that did nothing."""
        names = {name.rpartition(".")[0] for name in self.names("cpu.") if name.endswith((".user", ".system"))}
        used = {name: self.cpu(name) or 0.0 for name in names}
        return {name: cores for name, cores in sorted(used.items(), key=lambda item: -item[1]) if cores >= 0.005}

    def generator(self) -> float | None:
        """Cores of the busiest process of the generator, as far as that can be told: the upper quartile of all seconds of all
        of them, because a sample does not name its process."""
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
