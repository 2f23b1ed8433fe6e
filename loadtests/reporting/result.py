"""The elements of a report, and the data that parts of the bench and campaigns pass to it."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from matplotlib.figure import Figure

from loadtests.recording.reading import Recording

# A resolution that is sharp on a slide.
PICTURE_DPI = 150
# The headings of columns, by the keys of rows. Others are made from the words of the key, some of which are replaced.
HEADINGS = {"mean_rate": "requests/s", "beside_percent": "part of the lookups beside it, %"}
HEADINGS |= {"median": "median s", "low": "minimum s", "high": "maximum s"}
WORDS = {"cpu": "CPU", "iovs": "IOVs", "mib": "MiB", "p999": "p99.9", "percent": "%", "postgres": "PostgreSQL"}


@dataclass(frozen=True)
class Table:
    """A table; the report formats numbers and shows text as it is."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple]

    @classmethod
    def of(cls, title: str, rows: Iterable[Mapping], columns: str | Mapping[str, str], **headings: str) -> "Table":
        """A table of the values of these keys of the rows.

        `columns` has the headings by key, or the keys, separated by spaces; `headings` are those that differ from
        `HEADINGS` and from the words of the key.
        """
        if isinstance(columns, str):
            columns = {key: (HEADINGS | headings).get(key) or _heading(key) for key in columns.split()}
        return cls(title, tuple(columns.values()), [tuple(row.get(key) for key in columns) for row in rows])


def _heading(key: str) -> str:
    words = key.replace("_per_s", "/s").replace("cpu_ms", "cpu_ms/response").split("_")
    return " ".join(WORDS.get(word, word) for word in words)


@dataclass(frozen=True)
class Plot:
    """A figure of matplotlib, which can be written as SVG and PNG."""

    title: str
    figure: Figure

    @cached_property
    def svg(self) -> str:
        """The text of an SVG element; inside HTML it must not have an XML declaration."""
        text = self._saved("svg", metadata={"Date": None}).decode()
        return re.sub(r"^.*?(?=<svg)", "", text, count=1, flags=re.DOTALL)

    def png(self) -> bytes:
        """The content of a PNG file."""
        return self._saved("png", dpi=PICTURE_DPI)

    def _saved(self, form: str, **options: Any) -> bytes:
        content = io.BytesIO()
        self.figure.savefig(content, format=form, bbox_inches="tight", **options)
        return content.getvalue()


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

    part: str = ""
    title: str = ""
    intro: str = ""
    targets: list[Target] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Signals:
    """Samples of the server during a run: rows with `time`, in seconds since the epoch, and the columns of `signals/`.

    A sample that could not be read is left out.
    """

    rows: list[dict[str, float]] = field(default_factory=list)

    def column(self, name: str) -> tuple[list[float], list[float]]:
        """The times and values of a column, from the rows that have it."""
        found = [(row["time"], row[name]) for row in self.rows if name in row]
        return [when for when, _ in found], [value for _, value in found]


@dataclass(frozen=True)
class Run:
    """A load with a label: its recording, the signals of the server, and the increase of its counters.

    `counters` are by name and labels as in /metrics (`cdb_requests_total{method="GET",…}`). A run that is not
    `detailed` has one line in a table of the report instead of a section. `settings` are those of the
    generator, as text by name; empty if unknown.
    """

    label: str
    recording: Recording
    signals: Signals = field(default_factory=Signals)
    counters: dict[str, float] = field(default_factory=dict)
    detailed: bool = True
    settings: dict[str, str] = field(default_factory=dict)


def all_correct(runs: Sequence[Run]) -> Target:
    """The target that all requests of some runs got the correct response; 0 % without requests."""
    requests = [run.recording.requests for run in runs]
    count = sum(map(len, requests))
    share = 1 - sum(one.failures for one in requests) / count if count else 0.0
    return Target("correct responses", share * 100, 100, at_most=False, unit="%")


@dataclass
class Findings(Result):
    """The findings of a campaign.

    `summary` is one sentence with the main number. `figures` are those that `compare` compares: the values of
    all repetitions by name with unit, such as "tiny, random: responses/s". `targets` decide whether the campaign
    passed, unless the run is too small for verdicts: then `too_small` is the option that made it so.
    """

    summary: str = ""
    question: str = ""
    runs: list[Run] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)
    too_small: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether every target was measured and met; None for a run that is too small for verdicts."""
        return None if self.too_small else all(target.met for target in self.targets)
