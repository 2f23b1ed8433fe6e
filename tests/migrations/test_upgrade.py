"""An old database that is upgraded is the same as a new one; migrations are not edited after they were recorded."""

import ast
from itertools import pairwise

import pytest
from django.core.management import call_command

from cdb.env import ROOT
from cdb_rest.models import DatabaseProperty, GlobalTag, GlobalTagStatus, PayloadIOV
from tests.migrations.records import (
    FIRST_COMPATIBLE,
    MIGRATIONS,
    RECORDED,
    differences,
    edited,
    migration_names,
    not_additive,
    read_schema,
)


def migrate(database):
    """Migrate a database, and return what it is made of then."""
    call_command("migrate", database=database.alias, verbosity=0, interactive=False)
    with database.cursor() as cursor:
        return read_schema(cursor)


@pytest.fixture
def restored(new_database):
    """Makes the database that was recorded when a migration was the newest, with the rows that it had."""

    def restore(name):
        database = new_database()
        with database.cursor() as cursor:
            cursor.execute((ROOT / RECORDED / f"{name}.sql").read_text())
        # The recorded statements change settings of their session.
        database.close()
        return database

    return restore


@pytest.mark.parametrize("name", migration_names())
def test_an_upgraded_database_is_the_same_as_a_new_one(restored, new_database, name):
    old, new = restored(name), new_database()
    assert differences(migrate(old), migrate(new)) == []
    for model, fields in ((GlobalTagStatus, ("name", "description")), (DatabaseProperty, ("name", "value"))):
        rows = [list(model.objects.using(one.alias).order_by("name").values_list(*fields)) for one in (old, new)]
        assert rows[0] == rows[1]
    tag = GlobalTag.objects.using(old.alias).get(name="tiny")
    assert tag.payload_iov_count == PayloadIOV.objects.using(old.alias).count() == 100


def compatible_migrations():
    return [name for name in migration_names() if name >= FIRST_COMPATIBLE]


def recorded_schema(restored, name):
    with restored(name).cursor() as cursor:
        return read_schema(cursor)


def test_since_version_1_migrations_only_add_to_the_schema(restored):
    names = compatible_migrations()
    schemas = [recorded_schema(restored, name) for name in names] if len(names) > 1 else []
    for name, (earlier, later) in zip(names[1:], pairwise(schemas), strict=True):
        assert not_additive(earlier, later) == [], f"{name}: code of the version before may fail (decision 12)"


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
