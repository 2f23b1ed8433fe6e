"""Migrations, and the SQL that they execute, are not edited after they were recorded."""

import ast

import pytest

from cdb.env import ROOT
from tests.migrations.records import MIGRATIONS, edited, migration_names

ADVICE = (
    "A migration and its SQL are frozen. Take the change back, and write it as a new migration with its own SQL; then run "
    "`python -m tests.migrations.records`, which records the new one (CONTRIBUTING.md, “Migrations”). Not as recorded: "
)


def test_no_migration_was_edited():
    files = edited()
    assert not files, ADVICE + ", ".join(files)


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
