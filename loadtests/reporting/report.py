"""The report: one HTML file with everything in it, the same as Markdown, and the raw rows as CSV."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from loadtests.reporting.figures import number
from loadtests.reporting.result import Result, Table, Target

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
.note { color: #555; } figure { margin: 1em 0; }
"""
# A longer table is shown when somebody opens it.
ROWS_OPEN = 30
WORDS = {True: "met", False: "missed", None: "not available"}


@dataclass(frozen=True)
class Report:
    """Everything that a run found."""

    title: str
    facts: Table
    results: Sequence[Result]
    notes: Sequence[str] = ()

    @property
    def targets(self) -> list[Target]:
        """Of all parts."""
        return [target for result in self.results for target in result.targets]

    def write(self, directory: Path) -> Path:
        """Write all files into a directory, which is made; returns the path of the HTML file."""
        directory.mkdir(parents=True, exist_ok=True)
        for result in self.results:
            write_csv(directory / f"{result.part}.csv", result.raw)
        (directory / "report.md").write_text(self.markdown())
        path = directory / "report.html"
        path.write_text(self.html())
        return path

    def html(self) -> str:
        """One page that needs nothing else."""
        links = " · ".join(f'<a href="#{one.part}">{escape(one.title)}</a>' for one in self.results)
        body = [f"<h1>{escape(self.title)}</h1>", f"<p>{links}</p>", *_paragraphs(self.notes)]
        body += [_html_table(self.facts), "<h2>Targets</h2>", _html_targets(self.targets)]
        for result in self.results:
            body += [f'<h2 id="{result.part}">{escape(result.title)}</h2>']
            body += _paragraphs([result.intro, *result.notes])
            body += [f"<figure>{plot.svg}</figure>" for plot in result.plots]
            body += [_html_table(table) for table in result.tables]
            body += [f'<p class="note">Raw rows: {result.part}.csv</p>'] if result.raw else []
        head = f'<meta charset="utf-8"><title>{escape(self.title)}</title><style>{STYLE}</style>'
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"

    def markdown(self) -> str:
        """The same without plots."""
        parts = [f"# {self.title}", *self.notes, _markdown_table(self.facts), "## Targets"]
        parts.append(_markdown_table(targets_table(self.targets)))
        for result in self.results:
            parts += [f"## {result.title}", result.intro, *result.notes, *map(_markdown_table, result.tables)]
        return "\n\n".join(part for part in parts if part) + "\n"


def targets_table(targets: Sequence[Target]) -> Table:
    """Name, value, bound, and whether it is met."""
    rows = [(one.name, _value(one), _bound(one), WORDS[one.met], one.note) for one in targets]
    return Table("", ("what", "value", "target", "", "remark"), rows)


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Rows whose columns are all keys that occur, in the order of their first occurrence; nothing without rows."""
    if not rows:
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _value(target: Target) -> str:
    return "–" if target.value is None else f"{number(target.value)} {target.unit}".strip()


def _bound(target: Target) -> str:
    return f"{'≤' if target.at_most else '≥'} {target.bound:g} {target.unit}".strip()


def _html_targets(targets: Sequence[Target]) -> str:
    table = targets_table(targets)
    classes = {"met": "met", "missed": "missed", "not available": "unknown"}
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
    lines = [f"| {' | '.join(_shown(value).replace('|', chr(92) + '|') for value in row)} |" for row in rows]
    return "\n".join([*([f"**{table.title}**", ""] if table.title else []), *lines])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, int | float) or value is None else str(value)


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [f"<p>{escape(text)}</p>" for text in texts if text]
