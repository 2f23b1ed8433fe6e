"""The committed migrations: complete, reversible, and leading to the schema of the models."""

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from cdb_rest.models import (
    DatabaseProperty,
    GlobalTag,
    GlobalTagChange,
    GlobalTagStatus,
    IdempotencyRecord,
    PayloadIOV,
    PayloadList,
    PayloadType,
)
from tests.migrations.records import differences, read_schema

# Those that others refer to first.
MODELS = (
    GlobalTagStatus, GlobalTag, PayloadType, PayloadList, PayloadIOV, GlobalTagChange, IdempotencyRecord,
    DatabaseProperty,
)  # fmt: skip


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def schema():
    with connection.cursor() as cursor:
        return read_schema(cursor)


def kinds(found, *wanted):
    """The parts of a schema that are of these kinds."""
    return {key: definition for key, definition in found.items() if key[0] in wanted}


def without_positions(found):
    """A schema in which the columns of a table may stand in any order."""
    return {key: definition.split(" ", 1)[1] if key[0] == "column" else definition for key, definition in found.items()}


def migrate(target):
    executor = MigrationExecutor(connection)
    executor.migrate([("cdb_rest", target)])


def migrate_to_the_end():
    migrate(MigrationExecutor(connection).loader.graph.leaf_nodes("cdb_rest")[0][1])


@pytest.mark.django_db(transaction=True)
def test_migrations_go_back_to_nothing_and_forth_again():
    before = schema()
    assert kinds(before, "function") and kinds(before, "trigger")
    try:
        migrate(None)
        left = schema()
        assert not kinds(left, "function", "trigger")
        tables = {connection.ops.quote_name(model._meta.db_table) for model in MODELS}
        assert not {name for kind, name in kinds(left, "table")} & tables
    finally:
        migrate_to_the_end()
    assert schema() == before
    statuses = GlobalTagStatus.objects.order_by("id")
    assert list(statuses.values_list("name", flat=True)) == ["unlocked", "locked", "frozen"]
    mode = DatabaseProperty.objects.values_list("name", "value")
    assert list(mode) == [("iov_mode", settings.CDB_IOV_MODE)]


@pytest.mark.django_db(transaction=True)
def test_the_migrated_schema_is_that_of_the_models():
    compared = ("table", "column", "default", "constraint", "index", "sequence")
    # Without the view, which goes with the tables that it reads.
    with connection.cursor() as cursor:
        cursor.execute('DROP VIEW "ListedPayloadIOV"')
    before = without_positions(kinds(schema(), *compared))
    with connection.schema_editor() as editor:
        for model in reversed(MODELS):
            editor.delete_model(model)
    with connection.schema_editor() as editor:
        for model in MODELS:
            editor.create_model(model)
    made = without_positions(kinds(schema(), *compared))
    try:
        assert differences(before, made) == []
    finally:
        migrate(None)
        migrate_to_the_end()
