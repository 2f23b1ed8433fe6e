"""Rows of an import: a file in CSV or JSON Lines, a DataFrame, or mappings, with the columns of an export."""

import csv
import json
import operator
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cdb_client import errors
from cdb_client.moments import OPEN, Moment, exclusive_end, wire_end

START, END = ("major_iov", "minor_iov"), ("major_iov_end", "minor_iov_end")
PAYLOAD = ("payload_type", "payload_url", "checksum", "size", "revision")
COLUMNS = {*PAYLOAD, *START, *END, "since", "until", "mode"}

# The number of the line or row in its source, and its values; or what is wrong with it.
Numbered = tuple[int, dict[str, Any] | str]


def read_rows(rows: Any, mode: str) -> Iterator[Numbered]:
    """The rows in the form of `payload-iovs/insert`, without a tag. `mode` is the service's.

    Raises `InputError` if a file cannot be read.
    """
    for number, values in _read(rows):
        try:
            yield number, values if isinstance(values, str) else _insertion(values, mode)
        except errors.InputError as error:
            yield number, str(error)


def _insertion(given: dict[str, Any], own: str) -> dict[str, Any]:
    """The row of a request, in the form of `payload-iovs/insert`. Raises `InputError`."""
    values = {str(name): value for name, value in given.items() if value is not None and value != ""}
    if "url" in values:
        values["payload_url"] = values.pop("url")
    if unknown := values.keys() - COLUMNS:
        raise errors.InputError(f"Unknown column {min(unknown)!r}; the columns are those of an export.")
    since = moment_of(values["since"]) if "since" in values else _pair(values, START)
    if since is None:
        raise errors.InputError("The start is missing: since, or major_iov and minor_iov.")
    until = end_of(values["until"]) if "until" in values else end_of(_pair(values, END) or "next")
    mode = values.get("mode")
    if mode not in (None, "continuous", "discrete"):
        raise errors.InputError(f"mode must be continuous or discrete (got {mode!r}).")
    if isinstance(until, list):
        major, minor = until
        if until == list(OPEN):
            until = "next"
        elif mode and isinstance(minor, int) and mode != own:
            until = list(wire_end(exclusive_end(Moment(int(major), minor), mode), own))
    elif until == "open":
        until = "next"
    row = {name: values[name] for name in PAYLOAD if name in values}
    if "size" in row:
        row["size"] = _number("size", row["size"])
    return {"checksum": "", **row, "since": list(since), "until": until}


def _read(rows: Any) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The values of each row by column, with its number from 1: that of its line in a file. A text is a fault."""
    if isinstance(rows, Path | str):
        try:
            with Path(rows).open(encoding="utf-8-sig", newline="") as file:
                first = file.readline()
                file.seek(0)
                yield from _read_json_lines(file) if first.lstrip().startswith("{") else _read_csv(file)
        except (OSError, UnicodeDecodeError) as error:
            raise errors.InputError(f"{rows} cannot be read: {error}") from None
        return
    if hasattr(rows, "to_dict"):
        rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
    for number, values in enumerate(rows, 1):
        yield number, dict(values)


def _read_json_lines(file: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            yield number, f"It is not valid JSON: {error}."
            continue
        yield number, values if isinstance(values, dict) else "A line must be a JSON object."


def _read_csv(file: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    reader = csv.reader(file, strict=True)
    try:
        names = next(reader, [])
        if "payload_type" not in names:
            yield 1, "It is neither JSON Lines nor CSV with the columns of an export."
            return
        for fields in reader:
            if len(fields) == len(names):
                yield reader.line_num, dict(zip(names, fields, strict=True))
            elif fields:
                yield reader.line_num, f"It has {len(fields)} fields instead of {len(names)}."
    except csv.Error as error:
        yield reader.line_num, f"It is not valid CSV: {error}."


def moment_of(value: Any) -> Moment:
    """The moment of a text such as "5,0", a pair or a number. Raises `InputError`."""
    if isinstance(value, str):
        return Moment.parse(value)
    if isinstance(value, list | tuple) and len(value) == 2:
        return Moment.checked(_number("a moment", value[0]), _number("a moment", value[1]))
    return Moment.checked(_number("a moment", value), 0)


def end_of(value: Any) -> str | list[int | str]:
    """An end in the form of `payload-iovs/insert`. Raises `InputError`."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in ("next", "open"):
            return text
        major, _, minor = text.partition(",")
        value = (major, minor) if minor == "end" else value
    if isinstance(value, list | tuple) and len(value) == 2 and value[1] == "end":
        return [_number("the end", value[0]), "end"]
    return list(moment_of(value))


def _pair(values: Mapping[str, Any], names: tuple[str, str]) -> tuple[Any, Any] | None:
    given = [values.get(name) for name in names]
    if given == [None, None]:
        return None
    if None in given:
        raise errors.InputError(f"A moment has two numbers: {' and '.join(names)}.")
    major, minor = names
    number = _number(major, values[major])
    return number, "end" if values[minor] == "end" else _number(minor, values[minor])


def _number(name: str, value: Any) -> int:
    """A number of a row: an integer, also of numpy, or a text of digits. A column of floats may have rounded large numbers."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    try:
        return operator.index(value)
    except TypeError:
        raise errors.InputError(f"{name} must be a whole number from 0 to 2^63-1 (got {value!r}).") from None
