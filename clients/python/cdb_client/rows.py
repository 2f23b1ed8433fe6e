"""Rows of an import: a file in CSV or JSON Lines, a DataFrame, or mappings, with the columns of an export."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cdb_client.errors import InputError
from cdb_client.moments import LARGEST

START, END = ("major_iov", "minor_iov"), ("major_iov_end", "minor_iov_end")
# The end of an open interval, as numbers or texts, and that of a row without an end.
OPEN_ENDS = ([str(LARGEST)] * 2, ["None"] * 2)


def read_rows(rows: Any, mode: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows in the form of `payload-iovs/insert`, without a tag, each with its place, for example "rows.csv, line 2".

    The service checks their values. `mode` is the service's. Raises `InputError` for what is not in one of the forms.
    """
    if hasattr(rows, "to_dict"):
        rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
    for place, given in _read_file(rows) if isinstance(rows, Path | str) else _numbered("row", rows):
        try:
            yield place, _insertion(json.loads(given) if isinstance(given, str) else given, mode)
        except (ValueError, InputError) as error:
            raise InputError(f"{place}: {error}") from None


def wire_moment(value: Any) -> Any:
    """A moment or an end as the service reads it, from a text such as `1234`, `1234,5` or `7,end`, a number or a pair."""
    if isinstance(value, list | tuple) or value in ("next", "open"):
        return value
    text = str(value)
    return text.split(",") if "," in text else [text, "0"]


def _insertion(given: Any, mode: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError("A row must be an object.")
    row = {str(name): _exact(value) for name, value in given.items() if value is not None and value != ""}
    if (given_mode := row.pop("mode", mode)) != mode:
        raise InputError(f"The end is in mode {given_mode}, but the mode of the service is {mode}.")
    if "url" in row:
        row["payload_url"] = row.pop("url")
    since, until = ([row.pop(name, None) for name in names] for names in (START, END))
    since, until = wire_moment(row.get("since", since)), wire_moment(row.get("until", until))
    is_open = until == "open" or [str(number) for number in until] in OPEN_ENDS
    return {"checksum": "", **row, "since": since, "until": "next" if is_open else until}


def _exact(value: Any) -> Any:
    """The value; as an integer if it is a whole number that pandas stores as a float, because its column has missing values."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _numbered(place: str, rows: Any) -> Iterator[tuple[str, Any]]:
    return ((f"{place} {number}", row) for number, row in enumerate(rows, 1))


def _read_file(path: Path | str) -> Iterator[tuple[str, Any]]:
    """The lines of a file in JSON Lines, or the rows of one in CSV."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            is_json = file.readline().lstrip().startswith("{")
            file.seek(0)
            if is_json:
                yield from (line for line in _numbered(f"{path}, line", file) if line[1].strip())
                return
            reader = csv.DictReader(file, strict=True)
            if "payload_type" not in (reader.fieldnames or ()):
                raise InputError(f"{path} is neither JSON Lines nor CSV with the columns of an export.")
            for row in reader:
                if None in row or None in row.values():
                    raise InputError(f"{path}, line {reader.line_num}: It has not as many fields as the first line.")
                yield f"{path}, line {reader.line_num}", row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
