"""What a part hands to the report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Columns and rows, as they are shown: numbers are formatted by the report, text is left as it is."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple]


@dataclass(frozen=True)
class Plot:
    """A figure as the text of an SVG element, and what makes a PNG of it."""

    title: str
    svg: str
    png: Callable[[], bytes] = field(compare=False, repr=False)


@dataclass(frozen=True)
class Target:
    """A value and the bound it is meant to keep; `value` is None where it could not be measured."""

    name: str
    value: float | None
    bound: float
    at_most: bool
    unit: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """None where there is no value."""
        if self.value is None:
            return None
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass
class Result:
    """One part's findings; `raw` is written to a CSV file whose columns are all keys that occur."""

    part: str
    title: str
    intro: str = ""
    targets: list[Target] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
