"""Migrations, and the SQL that they execute, are not edited after they were recorded."""

import ast
import shutil

import pytest

from cdb.env import ROOT
from tests.migrations.records import MIGRATIONS, RECORDED, edited, migration_names

ADVICE = (
    "A migration and its SQL are frozen. Take the change back, and write it as a new migration with its own SQL; then run "
    "`python -m tests.migrations.records`, which records the new one (CONTRIBUTING.md, “Migrations”). Not as recorded: "
)


def test_no_migration_was_edited():
    files = edited()
    assert not files, ADVICE + ", ".join(files)


@pytest.fixture
def copy(tmp_path):
    for directory in (MIGRATIONS, RECORDED):
        shutil.copytree(ROOT / directory, tmp_path / directory, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    "file",
    [
        f"{MIGRATIONS}/0001_conditions_database.py",
        f"{MIGRATIONS}/0001_conditions_database/answer.sql",
        f"{RECORDED}/0001_conditions_database.sql",
    ],
)
def test_an_edited_or_removed_file_is_found(copy, file):
    assert edited(copy) == []
    with (copy / file).open("a") as appended:
        appended.write("\n")
    assert edited(copy) == [file]
    (copy / file).unlink()
    assert file in edited(copy)


def test_a_migration_that_was_not_recorded_is_found(copy):
    added = [copy / MIGRATIONS / "9999_later.py", copy / MIGRATIONS / "9999_later" / "later.sql"]
    added[1].parent.mkdir()
    for file in added:
        file.touch()
    assert edited(copy) == [str(file.relative_to(copy)) for file in added]


def test_each_directory_beside_the_migrations_belongs_to_one():
    directories = {path.name for path in (ROOT / MIGRATIONS).iterdir() if path.is_dir()} - {"__pycache__"}
    assert directories <= set(migration_names())


@pytest.mark.parametrize("name", migration_names())
def test_a_migration_imports_nothing_of_the_service(name):
    modules = set()
    for node in ast.walk(ast.parse((ROOT / MIGRATIONS / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add("." * node.level + (node.module or ""))
    assert not {module.split(".")[0] for module in modules} & {"", "cdb", "cdb_rest", "cdb_web"}
