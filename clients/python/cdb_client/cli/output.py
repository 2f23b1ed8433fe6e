"""The output: data on stdout as a table, JSON, CSV or plain text, and everything else on stderr."""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from cdb_client.moments import Moment

if TYPE_CHECKING:
    from rich.console import Console

FORMS = ("table", "json", "csv", "plain")
# A longer result is printed as several tables, so that its first rows appear at once and memory stays small.
TABLE_ROWS = 1000
# Of these columns a table shows only the beginning: enough of a checksum to compare it, and times to the minute.
SHORTENED = {"checksum": 8, "time": 16, "created": 16, "updated": 16}
# Columns of a table that are broken into lines if the terminal is narrow.
LONG = ("url", "payload_iov", "a", "b", "gaps", "comment", "value", "author", "actor")
STYLES = {"unlocked": "yellow", "locked": "cyan", "frozen": "blue"}
Row = Mapping[str, Any]


@dataclass
class Output:
    """Prints results in one form: `table` on a terminal and `plain` elsewhere, if `form` is None.

    JSON has all members of a row, the other forms only the columns that were asked for. `plain` is a line for each row, with
    the values separated by tabs and without a header.
    """

    form: str | None = None
    is_quiet: bool = False

    def rows(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        """Print rows while they arrive."""
        if self._form == "table":
            self._print_tables(iter(rows), columns)
        elif self._form == "json":
            _print_json(rows)
        elif self._form == "csv":
            print_row = csv.writer(sys.stdout, lineterminator="\n").writerow
            print_row(columns)
            for row in rows:
                print_row([_cell(row, column) for column in columns])
        else:
            for row in rows:
                sys.stdout.write("\t".join(_text(row, column) for column in columns) + "\n")

    def record(self, record: Row) -> None:
        """Print one object: in a table and in plain text a line for each of its members."""
        if self._form == "json":
            sys.stdout.write(json.dumps(record) + "\n")
        elif self._form == "csv":
            self.rows([record], list(record))
        else:
            self.rows(({"name": name, "value": value} for name, value in record.items()), ("name", "value"))

    def say(self, message: str) -> None:
        """Print a message for persons on stderr, unless the command is quiet."""
        if not self.is_quiet:
            sys.stderr.write(f"cdb: {message}\n")

    @contextmanager
    def progress(self, task: str) -> Iterator[Callable[..., None]]:
        """Show a progress bar inside the block, on a terminal only. Call what it yields with the number done, and of all."""
        if self.is_quiet or not sys.stderr.isatty():
            yield lambda _done, _total=None: None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=_console(sys.stderr), transient=True) as bar:
            number = bar.add_task(task, total=None)
            yield lambda done, total=None: bar.update(number, completed=done, total=total)

    @property
    def is_json(self) -> bool:
        """Whether programs read the output as JSON."""
        return self._form == "json"

    @property
    def _form(self) -> str:
        return self.form or ("table" if sys.stdout.isatty() else "plain")

    def _print_tables(self, rows: Iterator[Row], columns: Sequence[str]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        console, is_empty = _console(sys.stdout), True
        names = [column.removesuffix(".payload_url").rpartition(".")[2] for column in columns]
        while page := [[_text(row, column) for column in columns] for row in islice(rows, TABLE_ROWS)]:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
            # Columns without any value are left out.
            kept = [number for number, texts in enumerate(zip(*page, strict=True)) if any(texts)]
            for number in kept:
                heading = names[number].removeprefix("payload_").replace("_", " ")
                table.add_column(heading, overflow="fold", no_wrap=names[number] not in LONG)
            for texts in page:
                shown = ((texts[number], SHORTENED.get(names[number])) for number in kept)
                table.add_row(*(Text(text[:length], STYLES.get(text, "")) for text, length in shown))
            console.print(table)
            is_empty = False
        if is_empty:
            self.say("nothing found")


def _console(file: Any) -> "Console":
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            # `main` handles it, as for the other forms.
            raise

    plain: dict[str, Any] = {"color_system": None} if os.environ.get("NO_COLOR") else {}
    return PipeConsole(file=file, highlight=False, markup=False, emoji=False, **plain)


def _print_json(rows: Iterable[Row]) -> None:
    """An array with one row in each line."""
    opening = "["
    for row in rows:
        sys.stdout.write(opening + json.dumps(row))
        opening = ",\n"
    sys.stdout.write("[]\n" if opening == "[" else "]\n")


def _cell(row: Row, column: str) -> str:
    """The text of a column; `a.b` is member `b` of the object in column `a`, if there is one."""
    first, _, rest = column.partition(".")
    value = row.get(first)
    return (_cell(value, rest) if value else "") if rest else _value(value)


def _value(value: Any) -> str:
    """A value as text: a moment as `major,minor` or `open`, an interval as `since..until`, and nothing for null."""
    match value:
        case None | []:
            return ""
        case [int(major), int(minor)]:
            return str(Moment(major, minor))
        case {"since": since, "until": until, **more} if not more:
            return f"{_value(since)}..{_value(until)}"
        case [{"since": _}, *_]:
            return " ".join(map(_value, value))
        case bool() | dict() | list() | tuple():
            return json.dumps(value)
    return str(value)


def _text(row: Row, column: str) -> str:
    """The same on one line, without characters that would control a terminal."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in _cell(row, column))
