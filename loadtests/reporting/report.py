"""The report: a self-contained HTML file, the same as Markdown, rows and tables as CSV, plots as PNG and SVG."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from loadtests.reporting.figures import number
from loadtests.reporting.result import Plot, Result, Table, Target

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1280px; margin: 2em auto; padding: 0 1em; color: #1a1a1a; }
table { border-collapse: collapse; margin: .8em 0 1.6em; font-size: 13px; display: block; overflow-x: auto; }
caption { text-align: left; font-weight: 600; padding: .3em 0; }
th, td { padding: .25em .7em; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
th { border-bottom: 2px solid #888; white-space: normal; max-width: 7em; vertical-align: bottom; }
tr:hover td { background: #f4f7fa; }
.met { color: #006837; } .missed { color: #a50026; font-weight: 600; } .unknown { color: #666; }
summary { font-weight: 600; font-size: 13px; cursor: pointer; margin: .8em 0; }
h2 { margin-top: 2.2em; border-top: 1px solid #ccc; padding-top: .8em; } svg { max-width: 100%; height: auto; }
.headline { font-size: 26px; line-height: 1.3; margin: .6em 0; padding: .5em .7em; background: #f4f7fa; border-left: 6px solid; }
.warning { color: #a50026; font-weight: 600; }
.note { color: #555; } figure { margin: 1em 0; }
"""
# A longer table is collapsed.
ROWS_OPEN = 30
WORDS = {True: "met", False: "missed", None: "not available"}
NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Report:
    """A report of bench, of a campaign or of a comparison.

    `headline` is a sentence in large type that answers `question`, with the verdict `passed` (None: no
    verdict). With a headline, the targets come directly after it, and tables before plots. `too_small` is the
    option that makes the run too small for verdicts, or empty: the page then says so and shows the targets
    without verdicts. `name` is the file name of the page.
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
        links = " · ".join(f'<a href="#{one.part}">{escape(one.title)}</a>' for one in self._sections)
        targets = ["<h2>Targets</h2>", _html_targets(self._targets_table())] if self.targets else []
        body = [f"<h1>{escape(self.title)}</h1>", *_paragraphs([self.question]), *self._html_headline()]
        body += [f"<p>{links}</p>", *_paragraphs(self.notes)]
        body += [*targets, _html_table(self.facts)] if self.headline else [_html_table(self.facts), *targets]
        for result in self._sections:
            body += [f'<h2 id="{result.part}">{escape(result.title)}</h2>']
            body += _paragraphs([result.intro, *result.notes])
            drawn = [f"<figure>{plot.svg}</figure>" for plot in result.plots]
            tables = [_html_table(table) for table in result.tables]
            body += [*tables, *drawn] if self.headline else [*drawn, *tables]
            body += [f'<p class="note">Raw rows: {result.part}.csv</p>'] if result.raw else []
        head = f'<meta charset="utf-8"><title>{escape(self.title)}</title><style>{STYLE}</style>'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"

    def markdown(self) -> str:
        """The page as Markdown, with references to the picture files."""
        headline = self._headline()
        parts = [f"# {self.title}", self.question, f"**{headline}**" if headline else "", *self.notes]
        targets = ["## Targets", _markdown_table(self._targets_table())] if self.targets else []
        facts = _markdown_table(self.facts)
        parts += [*targets, facts] if self.headline else [facts, *targets]
        for result in self._sections:
            parts += [f"## {result.title}", result.intro, *result.notes]
            parts += map(_markdown_table, result.tables)
            parts += [f"![{plot.title}]({file})" for plot, file in pictures(result)]
        return "\n\n".join(part for part in parts if part) + "\n"

    @property
    def _sections(self) -> list[Result]:
        """The results that have more than targets, which are shown separately."""
        return [one for one in self.results if any((one.intro, one.notes, one.tables, one.plots, one.raw))]

    def _targets_table(self) -> Table:
        return targets_table(self.targets, judged=not self.too_small)

    def _headline(self) -> str:
        sentence = f"{self.headline.rstrip('.')}." if self.headline else ""
        return f"{sentence} {verdict(self.passed, self.too_small)}".strip()

    def _html_headline(self) -> list[str]:
        look = "unknown" if self.too_small else {True: "met", False: "missed", None: "unknown"}[self.passed]
        headline = self._headline()
        return [f'<p class="headline {look}">{escape(headline)}</p>'] if headline else []


def verdict(passed: bool | None, too_small: str) -> str:
    """One sentence: whether the run passed, or that it is too small for verdicts; empty without a verdict."""
    if too_small:
        return f"Not judged: a run with {too_small} is too small for verdicts."
    return {True: "Passed.", False: "Failed.", None: ""}[passed]


def pictures(result: Result) -> Iterator[tuple[Plot, str]]:
    """The plots with the paths of their PNG files, relative to the page."""
    for place, plot in enumerate(result.plots, 1):
        yield plot, f"plots/{result.part}-{place}-{_slug(plot.title)}.png"


def targets_table(targets: Sequence[Target], *, judged: bool = True) -> Table:
    """A table of name, value, bound, remark and, if the values are `judged`, whether the target is met."""
    words = [WORDS[one.met] if judged or one.met is None else NOT_JUDGED for one in targets]
    rows = [(one.name, _value(one), _bound(one), word, one.note) for one, word in zip(targets, words, strict=True)]
    return Table("", ("what", "value", "target", "", "remark"), rows)


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


def _value(target: Target) -> str:
    if target.value is None:
        return "–"
    shown = number(target.value)
    # A value that misses its bound narrowly must not be rounded to the bound.
    exact = target.met is False and float(shown.replace(",", "")) == target.bound
    return f"{target.value if exact else shown} {target.unit}".strip()


def _bound(target: Target) -> str:
    return f"{'≤' if target.at_most else '≥'} {target.bound:g} {target.unit}".strip()


def _html_targets(table: Table) -> str:
    classes = {"met": "met", "missed": "missed", "not available": "unknown", NOT_JUDGED: "unknown"}
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{escape(value)}</td><td class="n">{escape(bound)}</td>'
        f'<td class="{classes[word]}">{word}</td><td>{escape(note)}</td></tr>\n'
        for name, value, bound, word, note in table.rows
    )
    return f"<table>{_html_head(table.columns)}{rows}</table>"


def _html_table(table: Table) -> str:
    rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>\n" for row in table.rows)
    if len(table.rows) > ROWS_OPEN:
        summary = f"<summary>{escape(table.title)}: {len(table.rows)} rows</summary>"
        return f"<details>{summary}<table>{_html_head(table.columns)}{rows}</table></details>"
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return f"<table>{caption}{_html_head(table.columns)}{rows}</table>"


def _html_head(columns: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<th>{escape(column)}</th>' for column in columns)}</tr>\n" if any(columns) else ""


def _html_cell(value: Any) -> str:
    is_number = isinstance(value, int | float) or value is None
    return f'<td class="n">{_shown(value)}</td>' if is_number else f"<td>{escape(_shown(value))}</td>"


def _markdown_table(table: Table) -> str:
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    lines = [f"| {' | '.join(map(_markdown_cell, row))} |" for row in rows]
    return "\n".join([*([f"**{table.title}**", ""] if table.title else []), *lines])


def _markdown_cell(value: Any) -> str:
    """A value on one line: the example of an error may have several."""
    return " ".join(_shown(value).split()).replace("|", chr(92) + "|")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) or value is None else str(value)


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [
        f'<p class="warning">{escape(text)}</p>' if text.startswith("Warning:") else f"<p>{escape(text)}</p>"
        for text in texts
        if text
    ]


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "table"
