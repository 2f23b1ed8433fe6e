"""Figures of repeated measurements by point, and the tables and CSV rows that show them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadtests.reporting.figures import Spread
from loadtests.reporting.result import Table

Figures = Mapping[str, float | None]


@dataclass
class Repetitions:
    """The figures of all repetitions of a measurement, by the parts of its points.

    The parts of a point are the numbers or names that identify it. `columns` are their columns in tables and CSV files,
    `label` is a format of them.
    """

    columns: tuple[str, ...]
    label: str = "{}"
    measured: dict[tuple, list[Figures]] = field(default_factory=dict, init=False)

    def add(self, parts: tuple, figures: Figures) -> None:
        """Add a repetition of a point."""
        self.measured.setdefault(parts, []).append(figures)

    def values(self, name: str, *parts: Any) -> list[float]:
        """The values of a figure in all repetitions of a point that have it."""
        return [one[name] for one in self.measured[parts] if one[name] is not None]

    def median(self, name: str, *parts: Any) -> float | None:
        """The median of a figure at a point; None without values."""
        values = self.values(name, *parts)
        return Spread.of(values).median if values else None

    def spreads(self, name: str) -> dict[str, Spread]:
        """The spread of a figure at all points, by their labels."""
        return {self.label.format(*parts): Spread.of(self.values(name, *parts)) for parts in self.measured}

    def table(
        self,
        title: str,
        headings: Mapping[str, str],
        *,
        sums: Sequence[str] = (),
        more: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Table:
        """A table with a row for each point, and the spread of each figure, or its sum for those in `sums`.

        `headings` are by the name of the figure. `more` are further columns before the figures, with functions of the parts.
        """
        rows, more = [], more or {}
        for parts in self.measured:
            values = {name: self.values(name, *parts) for name in headings}
            shown = {name: str(Spread.of(found)) if found else None for name, found in values.items()}
            shown |= {name: int(sum(values[name])) for name in sums}
            rows.append((*parts, *(cell(*parts) for cell in more.values()), *shown.values()))
        return Table(title, (*self.columns, *more, *headings.values()), rows)

    def figures(self, headings: Mapping[str, str], label: str = "") -> dict[str, list[float]]:
        """The values of some figures for `compare`, by the labels of points and the headings; those without are omitted."""
        return {
            f"{(label or self.label).format(*parts)}: {heading}": values
            for parts in self.measured
            for name, heading in headings.items()
            if (values := self.values(name, *parts))
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row for each repetition, for the CSV file."""
        return [
            dict(zip(self.columns, parts, strict=True)) | {"repetition": number} | one
            for parts, repetitions in self.measured.items()
            for number, one in enumerate(repetitions, 1)
        ]
