"""What is recorded of each migration: checksums of its files, and a database as it was after it."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdb.embedded import binaries
from cdb.embedded.server import EmbeddedPostgres
from cdb.env import ROOT

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


def not_additive(earlier: Mapping[tuple[str, str], str], later: Mapping[tuple[str, str], str]) -> list[str]:
    """A line for each difference between two databases with which the code for the earlier one might fail on the later one.

    The later one may have more: tables, columns that are nullable or have a default, indexes and functions. The
    statements of functions and views may change.
    """
    lines = [
        f"{' '.join(key)}: {'missing' if key not in later else f'changed to {later[key]}'}"
        for key in sorted(earlier)
        if key not in later or _interface(key, later[key]) != _interface(key, earlier[key])
    ]
    new = later.keys() - earlier.keys()
    for kind, name in sorted(new):
        definition = later[kind, name]
        unique = re.match(r"CREATE UNIQUE INDEX \S+ ON (?:public\.)?(\S+)", definition)
        table = unique[1] if unique else re.split(r"[. ]", name)[0]
        if ("table", table) not in earlier:
            continue
        has_value = ("default", name) in later or re.search(r"identity=.|generated=.", definition)
        if kind == "column" and "not null" in definition and not has_value:
            lines.append(f"column {name}: new, not null, without a default")
        columns = {of_column.removeprefix(f"{table}.") for what, of_column in new if what == "column"}
        if (unique or kind == "constraint") and not columns & set(re.findall(r'"[^"]+"|\w+', definition)):
            lines.append(f"{kind} {name}: new, and it restricts columns that are not")
    return lines


def _interface(key: tuple[str, str], definition: str) -> str:
    """What callers of a function see of it, and readers of a view: not its statement. Everything of another object."""
    if key[0] == "function":
        return definition.split("\n LANGUAGE")[0]
    return "v" if key[0] == "table" and definition.startswith("v ") else definition


def read_rows(cursor: Any) -> dict[str, list[str]]:
    """All rows of all tables, and the states of all sequences."""
    kinds = {name: definition[0] for (kind, name), definition in read_schema(cursor).items() if kind == "table"}
    sequences = [name for kind, name in read_schema(cursor) if kind == "sequence"]
    rows = {}
    for name in [*(name for name, kind in kinds.items() if kind == "r"), *sequences]:
        cursor.execute(f"SELECT * FROM {name}")  # noqa: S608 -- a name that PostgreSQL quoted
        rows[name] = sorted(map(str, cursor.fetchall()))
    return rows


# The last migration before version 1.0. Later ones only add to the schema (decision 12).
FIRST_COMPATIBLE = "0004"
MIGRATIONS = Path("cdb_rest/migrations")
RECORDED = Path("tests/migrations/recorded")
SUMS = RECORDED / "SHA256SUMS"
# What psql alone understands, comments, and settings, some of which older servers do not know.
NOT_FOR_EVERY_SERVER = re.compile(r"^(\\|--|SET (?!check_function_bodies)).*\n", re.MULTILINE)


def migration_names(root: Path = ROOT) -> list[str]:
    """The names of the migrations in a tree, in their order."""
    return sorted(file.stem for file in (root / MIGRATIONS).glob("[0-9]*.py"))


def checksums(name: str, root: Path = ROOT) -> dict[str, str]:
    """The SHA-256 of each file that belongs to a migration: itself, its SQL and its recorded database, by their paths."""
    frozen_sql = sorted((root / MIGRATIONS / name).rglob("*"))
    files = [root / MIGRATIONS / f"{name}.py", *frozen_sql, root / RECORDED / f"{name}.sql"]
    return {
        str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()
    }


def recorded_checksums(root: Path = ROOT) -> dict[str, str]:
    """The checksums of all migrations as they were recorded."""
    lines = (root / SUMS).read_text().splitlines() if (root / SUMS).exists() else []
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def edited(root: Path = ROOT) -> list[str]:
    """The files that differ from what was recorded: changed, removed, or added without a record."""
    found = {path: digest for name in migration_names(root) for path, digest in checksums(name, root).items()}
    expected = recorded_checksums(root)
    return sorted(path for path in found.keys() | expected.keys() if found.get(path) != expected.get(path))


def record(name: str) -> None:
    """Write the database that all migrations together make, with the scenario `tiny` in it, and the checksums of the last one."""
    with tempfile.TemporaryDirectory() as directory:
        server = EmbeddedPostgres(Path(directory) / "postgres")
        server.acquire()
        try:
            environment = os.environ | {"DATABASE_URL": server.url, "CDB_ENV_FILE": os.devnull}
            for command in (["migrate", "--verbosity", "0"], ["seed_scenario", "tiny"]):
                subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=environment, check=True)
            dump = subprocess.run(
                [binaries.BINARIES / "pg_dump", "--inserts", "--no-owner", "--no-privileges", server.url],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        finally:
            server.release()
    statements = re.sub(r"\n{3,}", "\n\n", NOT_FOR_EVERY_SERVER.sub("", dump)).strip()
    (ROOT / RECORDED / f"{name}.sql").write_text(f"{statements}\n")
    sums = recorded_checksums() | checksums(name)
    (ROOT / SUMS).write_text("".join(f"{digest}  {path}\n" for path, digest in sorted(sums.items())))


def main(arguments: list[str]) -> int:
    """Record the newest migration; returns the process's exit code."""
    newest = migration_names()[-1]
    of_newest = re.compile(rf"/{newest}(/|\.py$|\.sql$)")
    frozen = [path for path in edited() if not of_newest.search(path)]
    if frozen:
        sys.stderr.write(f"earlier migrations are frozen; take back the changes of {', '.join(frozen)}\n")
        return 1
    if (ROOT / RECORDED / f"{newest}.sql").exists() and "--again" not in arguments:
        sys.stderr.write(
            f"{newest} is recorded already; --again replaces the record of a migration that is only yours\n"
        )
        return 1
    record(newest)
    sys.stdout.write(f"Recorded {newest} in {RECORDED}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
