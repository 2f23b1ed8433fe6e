"""The catalog of a database, and the differences between two of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

STATEMENT = (Path(__file__).parent / "schema.sql").read_text()
Schema = dict[tuple[str, str], str]


def read_schema(cursor: Any) -> Schema:
    """The definitions of all tables, columns, defaults, constraints, indexes, triggers, functions and sequences, by their kind
    and name."""
    cursor.execute(STATEMENT)
    rows = cursor.fetchall()
    schema = {(kind, name): definition for kind, name, definition in rows}
    assert len(schema) == len(rows), "two objects of one kind and name"
    return schema


def differences(upgraded: Mapping[tuple[str, str], str], new: Mapping[tuple[str, str], str]) -> list[str]:
    """A line for each object that is in one of two databases alone, or has another definition in the other."""
    lines = []
    for key in sorted(upgraded.keys() | new.keys()):
        here, there = upgraded.get(key, "missing"), new.get(key, "missing")
        if here != there:
            lines.append(f"{' '.join(key)}: upgraded: {here}; new: {there}")
    return lines


def read_rows(cursor: Any) -> dict[str, list[str]]:
    """All rows of all tables, and the states of all sequences."""
    kinds = {name: definition[0] for (kind, name), definition in read_schema(cursor).items() if kind == "table"}
    sequences = [name for kind, name in read_schema(cursor) if kind == "sequence"]
    rows = {}
    for name in [*(name for name, kind in kinds.items() if kind == "r"), *sequences]:
        cursor.execute(f"SELECT * FROM {name}")  # noqa: S608 -- a name that PostgreSQL quoted
        rows[name] = sorted(map(str, cursor.fetchall()))
    return rows
