"""The report: a self-contained HTML file, the same as Markdown, rows and tables as CSV, plots as PNG and SVG."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from loadtests.reporting.figures import number
from loadtests.reporting.result import Plot, Result, Table, Target

WORDS = {True: "met", False: "missed", None: "not available"}
NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Report:
    """A report of bench, of a campaign or of a comparison.

    `headline` is a sentence in large type that answers `question`, with the verdict `passed` (None: no
    verdict). `too_small` is the option that makes the run too small for verdicts, or empty: the page then says so
    and shows the targets without verdicts. `name` is the file name of the page.
    """

    title: str
    facts: Table
    results: Sequence[Result]
    notes: Sequence[str] = ()
    question: str = ""
    headline: str = ""
    passed: bool | None = None
    too_small: str = ""
    name: str = "report"

    @property
    def targets(self) -> list[Target]:
        """The targets of all results."""
        return [target for result in self.results for target in result.targets]

    def write(self, directory: Path) -> Path:
        """Write all files into a directory, which is created, and return the path of the HTML file.

        Plots and tables are written to its subdirectories `plots/` and `tables/`.
        """
        for name in ("plots", "tables"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        for result in self.results:
            write_csv(directory / f"{result.part}.csv", result.raw)
            for plot, file in pictures(result):
                (directory / file).write_bytes(plot.png())
                (directory / file).with_suffix(".svg").write_text(plot.svg)
            for place, table in enumerate(result.tables, 1):
                lines = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                write_csv(directory / "tables" / f"{result.part}-{place}-{_slug(table.title)}.csv", lines)
        (directory / f"{self.name}.md").write_text(self.markdown())
        path = directory / f"{self.name}.html"
        path.write_text(self.html())
        return path

    def html(self) -> str:
        """The page as self-contained HTML."""
        return _environment().get_template("report.html").render(report=self)

    def markdown(self) -> str:
        """The page as Markdown, with references to the picture files."""
        return re.sub(r"\n{3,}", "\n\n", _environment().get_template("report.md").render(report=self)).strip() + "\n"

    @property
    def sections(self) -> list[Result]:
        """The results that have more than targets, which are shown separately."""
        return [one for one in self.results if any((one.intro, one.notes, one.tables, one.plots, one.raw))]

    @property
    def targets_table(self) -> Table:
        """A table of name, value, bound, remark and, unless the run is too small, whether the target is met."""
        rows = []
        for one in self.targets:
            shown, sign = number(one.value), "≤" if one.at_most else "≥"
            # A value that misses its bound narrowly must not be rounded to the bound.
            if one.met is False and float(shown.replace(",", "")) == one.bound:
                shown = str(one.value)
            value = shown if one.value is None else f"{shown} {one.unit}".strip()
            word = NOT_JUDGED if self.too_small and one.met is not None else WORDS[one.met]
            rows.append((one.name, value, f"{sign} {one.bound:g} {one.unit}".strip(), word, one.note))
        return Table("", ("what", "value", "target", "", "remark"), rows)

    @property
    def sentence(self) -> str:
        """The headline with the verdict; empty without both."""
        sentence = f"{self.headline.rstrip('.')}." if self.headline else ""
        return f"{sentence} {verdict(self.passed, self.too_small)}".strip()


def verdict(passed: bool | None, too_small: str) -> str:
    """One sentence: whether the run passed, or that it is too small for verdicts; empty without a verdict."""
    if too_small:
        return f"Not judged: a run with {too_small} is too small for verdicts."
    return {True: "Passed.", False: "Failed.", None: ""}[passed]


def pictures(result: Result) -> Iterator[tuple[Plot, str]]:
    """The plots with the paths of their PNG files, relative to the page."""
    for place, plot in enumerate(result.plots, 1):
        yield plot, f"plots/{result.part}-{place}-{_slug(plot.title)}.png"


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows to a CSV file, with all their keys as columns in the order of first occurrence.

    No file without rows.
    """
    if not rows:
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def notes(name: str, **values: Any) -> list[str]:
    """The paragraphs of templates/notes/NAME.md with these values."""
    text = _environment().get_template(f"notes/{name}.md").render(values)
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip()]


def markdown_table(table: Table) -> str:
    """A table as Markdown."""
    return str(_environment().get_template("table.md").module.table(table)).strip()  # type: ignore[attr-defined]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cell": _cell, "pictures": pictures, "shown": _shown}
    return environment


def _cell(value: Any) -> str:
    """A value in a row of Markdown, on one line: the example of an error may have several."""
    return " ".join(_shown(value).split()).replace("|", chr(92) + "|")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) or value is None else str(value)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "table"
