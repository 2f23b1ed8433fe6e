"""Import files: CSV, a JSON array or JSON Lines, with a row for each payload IOV. The commands and the web pages read them here.

Nothing is guessed: a value that is not exactly what its column has is an error, which names the line and the column. Reading
stops at the first breach of a limit, and after `FAULTS_NAMED` faulty rows.
"""

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import Any, BinaryIO

import orjson
from django.conf import settings

from cdb_rest.parsing.parameters import parse_integer
from cdb_rest.rules.errors import CdbError, InvalidInputError, TooManyRowsError
from cdb_rest.rules.iov_rows import FAULTS_NAMED, IOVRow, refused_lines
from cdb_rest.rules.moment import END_OF_TIME, OPEN, Interval, Mode, Moment, end_of_major
from cdb_rest.rules.names import CONTROL_CHARACTER, NAME_LENGTH, REVISION_LENGTH, TEXT_LENGTH
from cdb_rest.rules.payloads import payload_url_fault

TEXTS = ("payload_type", "payload_url", "checksum")
START, END = ("major_iov", "minor_iov"), ("major_iov_end", "minor_iov_end")
COLUMNS = (*TEXTS, "size", *START, *END, "revision", "since", "until", "mode")
DELIMITERS = ",;\t"
MAX_COLUMNS = 50
MAX_LINE_BYTES = 65_536
MAX_ARRAY_BYTES = 2**28
# The name under which a record has the fault that it has as a whole.
FAULT = ""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
# Spreadsheets have 15 digits at most.
MOST_EXACT = 10**15
LARGE = 9_200_000_000_000_000_000
ROUNDED = "looks like 9223372036854775807, rounded by a spreadsheet; leave an open end empty"


@dataclass(frozen=True)
class Options:
    """How a file is read.

    - `mode`: the mode of the ends of rows that do not name theirs; None for that of the service.
    - `ignores_columns`: unknown columns are ignored, instead of being an error.
    - `may_be_cut`: the last line may have no line break, although it may be cut off.
    - `max_rows`: the largest number of rows; None for no limit.
    """

    mode: Mode | None = None
    ignores_columns: bool = False
    may_be_cut: bool = False
    max_rows: int | None = None


class CutFileError(InvalidInputError, status=400, code="file_may_be_cut_off"):
    """The last line of the file has no line break, so it may have been cut off."""


class _FaultError(Exception):
    """What is wrong with a row."""


def read_iov_rows(file: BinaryIO, options: Options) -> Iterator[IOVRow]:
    """The rows of a file in their order. The file is read from its present position, and need not be seekable.

    Raises `InvalidInputError`, whose `rows` describes the first faulty rows; also `TooManyRowsError`, `CutFileError`.
    """
    reader = _Reader(file, options)
    faults: list[tuple[int, str]] = []
    own, schemes = Mode(settings.CDB_IOV_MODE), settings.CDB_PAYLOAD_SCHEMES
    for count, (number, values) in enumerate(reader.records(), 1):
        if options.max_rows is not None and count > options.max_rows:
            raise TooManyRowsError(f"The file has more than {options.max_rows:,} rows; split it.")
        try:
            row = _row(number, values, options.mode or own, own, schemes)
        except _FaultError as fault:
            faults.append((number, str(fault)))
            if len(faults) == FAULTS_NAMED:
                break
            continue
        if not faults:
            yield row
    if faults:
        raise _faulty(faults)


def _faulty(faults: Iterable[tuple[int, str]]) -> CdbError:
    """The error for the lines with these numbers and faults. The caller raises it."""
    return refused_lines((number, InvalidInputError(fault)) for number, fault in faults)


class _Reader:
    """The records of a file, each with its number: that of its line, or its place in a JSON array, from 1."""

    def __init__(self, file: BinaryIO, options: Options) -> None:
        self._file = file
        self._options = options
        self._line = 0

    def records(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        begin = self._file.readline(MAX_LINE_BYTES + 1).removeprefix(BYTE_ORDER_MARK)
        if begin.lstrip().startswith(b"["):
            return self._array(begin)
        lines = self._lines(begin)
        first = next(lines, "")
        if first.lstrip().startswith("{"):
            return self._json_lines(chain([first], lines))
        return self._csv(first, lines)

    def _lines(self, line: bytes) -> Iterator[str]:
        """The lines that are neither blank nor comments, from the first one on; `_line` is the number of the last one."""
        while line:
            self._line += 1
            if len(line) > MAX_LINE_BYTES:
                raise _faulty([(self._line, f"A line has at most {MAX_LINE_BYTES:,} bytes.")])
            try:
                text = line.decode()
            except UnicodeDecodeError:
                raise _faulty(
                    [(self._line, "The file must be text in UTF-8; save it so (in Excel: CSV UTF-8).")]
                ) from None
            if not text.endswith("\n") and not self._options.may_be_cut:
                raise CutFileError(f"Line {self._line}: The last line has no line break; was the file cut off?")
            if text.strip() and not text.lstrip().startswith("#"):
                yield text
            line = self._file.readline(MAX_LINE_BYTES + 1)

    def _array(self, begin: bytes) -> Iterator[tuple[int, Mapping[str, Any]]]:
        content = begin + self._file.read(MAX_ARRAY_BYTES + 1)
        if len(content) > MAX_ARRAY_BYTES:
            raise InvalidInputError(f"A JSON array has at most {MAX_ARRAY_BYTES:,} bytes; use JSON Lines.")
        try:
            rows = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise InvalidInputError(f"The file is not valid JSON: {error}.") from None
        return ((number, self._members(number, row)) for number, row in enumerate(rows, 1))

    def _json_lines(self, lines: Iterator[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for line in lines:
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise _faulty([(self._line, f"It is not valid JSON: {error}.")]) from None
            yield self._line, self._members(self._line, row)

    def _members(self, number: int, row: Any) -> Mapping[str, Any]:
        if not isinstance(row, dict):
            raise _faulty([(number, "A row must be a JSON object.")])
        self._check_columns(number, list(row))
        return {name: row[name] for name in COLUMNS if row.get(name) is not None}

    def _csv(self, header: str, lines: Iterator[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        names, delimiter = _header(header, self._line or 1)
        self._check_columns(self._line or 1, [name for name in names if name])
        try:
            for fields in csv.reader(lines, delimiter=delimiter, strict=True):
                if len(fields) == len(names):
                    values = zip(names, fields, strict=True)
                    yield self._line, {name: field for name, field in values if name and field != ""}
                else:
                    kind, remedy = (
                        ("few", "; empty ones need a separator, too") if len(fields) < len(names) else ("many", "")
                    )
                    yield (
                        self._line,
                        {FAULT: f"It has too {kind} fields: {len(fields)} instead of {len(names)}{remedy}."},
                    )
        except csv.Error as error:
            raise _faulty([(self._line, f"It is not valid CSV: {error}.")]) from None

    def _check_columns(self, number: int, names: list[str]) -> None:
        unknown = [name for name in names if name not in COLUMNS]
        if unknown and not self._options.ignores_columns:
            raise _faulty([(number, f"Unknown columns: {_named(unknown)}; correct or remove them.")])


def _named(unknown: list[str]) -> str:
    """Unknown columns, each with the most similar known one."""
    similar = ((name[:60], get_close_matches(name[:60], COLUMNS, 1)) for name in unknown[:10])
    return ", ".join(f"{name} ({known[0]}?)" if known else name or "one without a name" for name, known in similar)


def _header(line: str, number: int) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter: the one with which most of them are known. One column may have no name."""
    found: list[tuple[int, list[str], str]] = []
    for delimiter in DELIMITERS:
        if line.count(delimiter) >= MAX_COLUMNS:
            raise _faulty([(number, f"The file has more than {MAX_COLUMNS} columns.")])
        try:
            names = [name.strip().lower() for name in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
        except csv.Error as error:
            raise _faulty([(number, f"The header is not valid CSV: {error}.")]) from None
        found.append((sum(name in COLUMNS for name in names), names, delimiter))
    _, names, delimiter = max(found, key=lambda item: item[0])
    missing = [name for name in TEXTS[:2] if name not in names]
    if "since" not in names:
        missing += [name for name in START if name not in names]
    if missing:
        unknown = [name for name in names if name not in COLUMNS]
        found_here = f"; not columns: {_named(unknown)}" if unknown else ""
        raise _faulty(
            [
                (
                    number,
                    "The file must be JSON, or CSV whose first line names the columns payload_type, payload_url, and since or "
                    f"major_iov and minor_iov (missing: {', '.join(missing)}{found_here}).",
                )
            ]
        )
    for name in set(names):
        if names.count(name) > 1:
            raise _faulty([(number, f"The column {name or 'without a name'} is there twice.")])
    for whole, parts in (("since", START), ("until", END)):
        if whole in names and any(part in names for part in parts):
            raise _faulty([(number, f"The file has both {whole} and {' or '.join(parts)}.")])
    return names, delimiter


def _row(number: int, values: Mapping[str, Any], mode: Mode, own: Mode, schemes: Collection[str]) -> IOVRow:
    """The row of a record without its empty values. Its end is in `mode`, that of the service in `own`. Raises `_FaultError`."""
    if FAULT in values:
        raise _FaultError(values[FAULT])
    since = _moment("since", values["since"], lambda major: Moment(major, 0)) if "since" in values else None
    since = since or _pair(values, START)
    if since is None:
        raise _FaultError("The start is missing.")
    mode = _mode(values["mode"]) if "mode" in values else mode
    until, is_open = _until(values, mode)
    if until is not None:
        interval = Interval.from_wire(since, until, mode)
        if interval.is_empty:
            rule = "after" if mode is Mode.CONTINUOUS else "at or after"
            name = "until" if "until" in values else "major_iov_end, minor_iov_end"
            raise _FaultError(f"{name} {until} must be {rule} the start {since}; are they swapped?")
        _, until = interval.on_wire(own)
        is_open = until == END_OF_TIME
    return IOVRow(
        number=number,
        payload_type=_text(values, "payload_type", NAME_LENGTH, is_required=True),
        payload_url=_payload_url(values, schemes),
        checksum=_text(values, "checksum", TEXT_LENGTH),
        size=_number("size", values.get("size", 0)),
        revision=_revision(values.get("revision")),
        since=since,
        until=None if is_open else until,
        is_open=is_open,
    )


def _until(values: Mapping[str, Any], mode: Mode) -> tuple[Moment | None, bool]:
    """The end in the wire format of `mode`, None for none of its own; and whether it is open."""
    if "until" not in values:
        return _pair(values, END, mode), False
    text = values["until"]
    if isinstance(text, str) and text.strip().lower() in ("next", "open"):
        return None, text.strip().lower() == "open"

    def of_major(major: int) -> Moment:
        return end_of_major(major, mode) if mode is Mode.DISCRETE else Moment(major, 0)

    return _moment("until", text, of_major, mode), False


def _pair(values: Mapping[str, Any], names: tuple[str, str], mode: Mode | None = None) -> Moment | None:
    """The moment of two columns, None without both; with `mode`, the second one may be "end"."""
    given = [name for name in names if name in values]
    if not given:
        return None
    if len(given) == 1:
        missing = names[1] if given == [names[0]] else names[0]
        raise _FaultError(f"{missing} is missing: a moment has two numbers.")
    major, minor = names
    if mode is not None and values[minor] == "end":
        return end_of_major(_number(major, values[major]), mode)
    return Moment(_number(major, values[major]), _number(minor, values[minor]))


def _moment(name: str, value: Any, of_major: Callable[[int], Moment], mode: Mode | None = None) -> Moment:
    """A moment as "major,minor" or only "major", or as a JSON array; with `mode`, "end" may stand for the minor number."""
    halves = value if isinstance(value, list) else str(value).split(",") if isinstance(value, str | int) else [value]
    halves = [half.strip() if isinstance(half, str) else half for half in halves]
    if len(halves) == 1:
        return of_major(_number(name, halves[0]))
    if len(halves) == 2 and halves[1] == "end" and mode is not None:
        return end_of_major(_number(name, halves[0]), mode)
    if len(halves) != 2:
        raise _FaultError(f"{name} must be major,minor (got {str(value)[:60]!r}).")
    return Moment(_number(name, halves[0]), _number(name, halves[1]))


def _number(name: str, value: Any) -> int:
    """A number in 0…2^63-1: a JSON integer, or a text of digits."""
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str) and DIGITS.fullmatch(value):
        number = int(value)
    if number is not None and 0 <= number <= OPEN:
        if number >= LARGE and number % 1000 == 0:
            raise _FaultError(f"{name} {ROUNDED} (got {value}).")
        return number
    try:
        meant = -1.0 if isinstance(value, list | dict) else float(value)
    except (TypeError, ValueError, OverflowError):
        meant = -1.0
    hint = ROUNDED if LARGE <= meant < 1e19 else f"must be a number from 0 to {OPEN}"
    if meant.is_integer() and 0 <= meant < MOST_EXACT:
        hint = f"must be written with digits only: {int(meant)}"
    raise _FaultError(f"{name} {hint} (got {str(value)[:60]!r}).")


def _text(values: Mapping[str, Any], name: str, most: int, *, is_required: bool = False) -> str:
    value = values.get(name, "")
    if not isinstance(value, str):
        raise _FaultError(f"{name} must be text (got {str(value)[:60]!r}).")
    if is_required and not value:
        raise _FaultError(f"{name} is missing.")
    if found := CONTROL_CHARACTER.search(value):
        raise _FaultError(f"{name} must not contain control characters (got {found[0]!r}).")
    if len(value) > most:
        raise _FaultError(f"{name} must have at most {most} characters (got {len(value)}).")
    return value


def _payload_url(values: Mapping[str, Any], schemes: Collection[str]) -> str:
    url = values.get("payload_url")
    if isinstance(url, str) and (fault := payload_url_fault(url, schemes)):
        raise _FaultError(fault)
    return _text(values, "payload_url", TEXT_LENGTH, is_required=True)


def _revision(value: Any) -> str | None:
    if value is None or value == "":
        return None
    number = parse_integer(value)
    if number is None or not 0 <= number <= OPEN or not str(value).isdigit() or len(str(value)) > REVISION_LENGTH:
        raise _FaultError(f"revision must be a number from 0 to {OPEN} (got {str(value)[:60]!r}).")
    return str(value)


def _mode(value: Any) -> Mode:
    if value not in [*Mode]:
        raise _FaultError(f"mode must be continuous or discrete (got {str(value)[:60]!r}).")
    return Mode(value)
