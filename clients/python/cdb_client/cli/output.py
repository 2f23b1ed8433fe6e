"""The output: data on stdout as a table, JSON, CSV or plain text, and everything else on stderr."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cdb_client.moments import Moment

FORMS = ("table", "json", "csv", "plain")
# What a table shows of these columns: enough of a checksum to compare it, and times to the minute.
WIDTHS = {"checksum": 9, "time": 17, "updated": 17, "created": 17}
# Columns of a table that are broken into lines if the terminal is narrow.
LONG = ("payload_type", "url", "a", "b", "payload_iov", "gaps", "comment", "value", "actor", "requester", "reason")
Row = Mapping[str, Any]


def say(message: str) -> None:
    """Print a message on stderr."""
    sys.stderr.write(f"cdb: {message}\n")


def print_rows(rows: Iterable[Row], columns: Sequence[str], form: str, document: Any = None) -> None:
    """Print rows: `plain` is a line for each, with the values separated by tabs and without a header.

    JSON has all members of a row, or is `document`, if it is given. The other forms have the columns, where `a.b` is member `b`
    of the object in column `a`.
    """
    if form == "json":
        sys.stdout.write(json.dumps(list(rows) if document is None else document, default=str) + "\n")
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row, column) for column in columns] for row in rows)
    elif form == "table":
        _print_table(rows, columns)
    else:
        for row in rows:
            sys.stdout.write("\t".join(_printable(_cell(row, column)) for column in columns) + "\n")


def _print_table(rows: Iterable[Row], columns: Sequence[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="bold cyan")
    for column in columns:
        name = column.removesuffix(".payload_url").rpartition(".")[2]
        way: Any = {"overflow": "fold"} if name in LONG else {"no_wrap": True, "max_width": WIDTHS.get(name)}
        table.add_column(name.removeprefix("payload_").replace("_", " "), **way)
    for row in rows:
        table.add_row(*(Text(_printable(_cell(row, column))) for column in columns))
    console = Console()
    # Not printed by rich, which would end the process if the reader of a pipe has gone.
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write(captured.get())


def _cell(row: Row, column: str) -> str:
    first, _, rest = column.partition(".")
    value = row.get(first)
    return (_cell(value, rest) if value else "") if rest else _text(value)


def _text(value: Any) -> str:
    """A value as text: a moment as `major,minor` or `open`, an interval as `since..until`, and nothing for null."""
    match value:
        case None:
            return ""
        case [int(major), int(minor)]:
            return str(Moment(major, minor))
        case {"since": since, "until": until, **more} if not more:
            return f"{_text(since)}..{_text(until)}"
        case list() | tuple():
            return " ".join(map(_text, value))
        case bool() | dict():
            return json.dumps(value)
    return str(value)


def _printable(text: str) -> str:
    """The text on one line, without characters that would control a terminal."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


@contextmanager
def progress(task: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar inside the block, on a terminal only. Call what it yields with the number done, and of all."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        number = bar.add_task(task, total=None)
        yield lambda done, total=None: bar.update(number, completed=done, total=total)
