"""Databases with other migrations are rejected with one line, and those of newer versions are used; neither is changed."""

import pytest
from django.core.management import CommandError, call_command
from django.db.migrations.recorder import MigrationRecorder

from tests.adopt.old_database import OldDatabase
from tests.migrations.records import migration_names, read_rows, read_schema


def contents(database):
    with database.cursor() as cursor:
        return read_schema(cursor), read_rows(cursor)


def migrate(database, *arguments, **options):
    call_command("migrate", *arguments, database=database.alias, verbosity=0, interactive=False, **options)


def execute(database, statements):
    with database.cursor() as cursor:
        cursor.execute(statements)


def refusal(database, *arguments, **options):
    """The line with which a database is refused, after a check that it has not been changed."""
    before = contents(database)
    with pytest.raises(CommandError) as refused:
        migrate(database, *arguments, **options)
    assert contents(database) == before
    line = str(refused.value)
    assert "\n" not in line and "Nothing was changed." in line
    return line


@pytest.mark.parametrize(
    ("arguments", "options"),
    [((), {}), (("auth",), {}), (("cdb_rest", "zero"), {}), ((), {"fake": True}), ((), {"run_syncdb": True})],
    ids=["all", "another app", "backwards", "fake", "syncdb"],
)
def test_the_database_of_nopayloaddb(new_database, arguments, options):
    # The app label, the name of the first migration and the names of the tables are ours as well.
    old = OldDatabase(database := new_database()).create()
    old.iov(old.payload_list("Beamspot", old.tag("sPHENIX")), (5, 0))
    assert refusal(database, *arguments, **options) == (
        "the database belongs to another application, such as nopayloaddb, or to a development version of cdb: this version has "
        "no migration 0001_initial. Nothing was changed. Set DATABASE_URL to an empty database or to one of cdb. manage.py adopt "
        "copies a database of nopayloaddb (docs/adopt.md)."
    )


def record(database, names):
    recorder = MigrationRecorder(database)
    recorder.ensure_schema()
    for name in names:
        recorder.record_applied("cdb_rest", name)


def test_a_database_of_a_newer_version_is_used_as_it_is(new_database, capsys):
    migrate(database := new_database())
    record(database, ["9998_newer"])
    before = contents(database)
    migrate(database)
    assert contents(database) == before
    assert capsys.readouterr().err == (
        "Warning: a newer version of cdb has migrated the database (9998_newer). This version uses it as it is.\n"
    )
    for arguments in (("cdb_rest", "zero"), ("cdb_rest",), ("auth",)):
        assert refusal(database, *arguments) == (
            "a newer version of cdb has migrated the database (9998_newer): use that version to migrate it. Nothing was changed."
        )


def test_a_database_with_unknown_migrations_between_the_known_ones_or_without_the_last_one(new_database):
    migrate(database := new_database())
    record(database, ["0002_other", "9998_newer"])
    assert "this version has no migration 0002_other, 9998_newer" in refusal(database)
    MigrationRecorder(database).record_unapplied("cdb_rest", "0002_other")
    MigrationRecorder(database).record_unapplied("cdb_rest", migration_names()[-1])
    assert "this version has no migration 9998_newer" in refusal(database)


@pytest.mark.parametrize(
    "statements",
    [
        "SELECT",
        "CREATE TABLE other (id bigint)",
        # As a first migration that was interrupted leaves it.
        "CREATE TABLE django_migrations (id bigserial, app varchar(255), name varchar(255), applied timestamptz)",
        'CREATE SCHEMA elsewhere; CREATE TABLE elsewhere."GlobalTag" (id bigint)',
    ],
    ids=["empty", "another table", "no migrations yet", "another schema"],
)
def test_a_database_without_anything_of_these_names_is_migrated_and_migrated_again(new_database, statements):
    execute(database := new_database(), statements)
    migrate(database)
    migrated = contents(database)
    migrate(database)
    assert contents(database) == migrated
