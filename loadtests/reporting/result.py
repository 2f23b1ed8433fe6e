"""The elements of a report: tables, plots, targets, and the results that contain them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table; the report formats numbers and shows text as it is."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple]


@dataclass(frozen=True)
class Plot:
    """A figure as the text of an SVG element, with a function that renders it as PNG."""

    title: str
    svg: str
    png: Callable[[], bytes] = field(compare=False, repr=False)


@dataclass(frozen=True)
class Target:
    """A value and its bound; `value` is None if it could not be measured."""

    name: str
    value: float | None
    bound: float
    at_most: bool
    unit: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the value keeps the bound; None without a value."""
        if self.value is None:
            return None
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass
class Result:
    """The findings of one part, a section of the report; `raw` is written to a CSV file with all keys as columns."""

    part: str
    title: str
    intro: str = ""
    targets: list[Target] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
