"""The committed migrations: complete, reversible, and leading to the schema of the models."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from cdb_rest.models import (
    DatabaseProperty,
    GlobalTag,
    GlobalTagChange,
    GlobalTagStatus,
    KeptAnswer,
    PayloadIOV,
    PayloadList,
    PayloadType,
)

# Those that others refer to first.
MODELS = (
    GlobalTagStatus,
    GlobalTag,
    PayloadType,
    PayloadList,
    PayloadIOV,
    GlobalTagChange,
    KeptAnswer,
    DatabaseProperty,
)
TABLES = {
    "GlobalTagStatus": ["id", "name", "description", "created"],
    "GlobalTag": ["id", "name", "author", "description", "status_id", "created", "updated"],
    "PayloadType": ["id", "name", "description", "created"],
    "PayloadList": ["id", "name", "description", "global_tag_id", "payload_type_id", "created", "updated"],
    "PayloadIOV": [
        "id", "payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end",
        "payload_list_id", "extra", "created", "updated", "comb_iov",
    ],
}  # fmt: skip


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def schema():
    """Columns, constraints, indexes, triggers and functions of our tables, as PostgreSQL itself writes them."""
    with connection.cursor() as cursor:
        found = {}
        for name, query in {
            "columns": """
                SELECT table_name, column_name, data_type, character_maximum_length, numeric_precision, numeric_scale,
                    is_nullable, column_default, is_generated, generation_expression
                FROM information_schema.columns
                WHERE table_name LIKE '%%Tag%%'
                    OR table_name IN ('PayloadType', 'PayloadList', 'PayloadIOV', 'KeptAnswer', 'DatabaseProperty')
            """,
            "constraints": """
                SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
                WHERE connamespace = 'public'::regnamespace AND contype NOT IN ('n', 't')
            """,
            "indexes": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
            "triggers": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
            "functions": "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'cdb%%'",
        }.items():
            cursor.execute(query)
            found[name] = sorted(map(str, cursor.fetchall()))
    return found


def migrate(target):
    executor = MigrationExecutor(connection)
    executor.migrate([("cdb_rest", target)])


def migrate_to_the_end():
    migrate(MigrationExecutor(connection).loader.graph.leaf_nodes("cdb_rest")[0][1])


@pytest.mark.django_db(transaction=True)
def test_migrations_go_back_to_nothing_and_forth_again():
    before = schema()
    assert before["functions"] and before["triggers"]
    try:
        migrate(None)
        left = schema()
        assert not left["functions"] and not left["triggers"]
        assert not any("Payload" in line or "GlobalTag" in line for line in left["indexes"])
    finally:
        migrate_to_the_end()
    assert schema() == before
    assert list(GlobalTagStatus.objects.order_by("id").values_list("name", flat=True)) == [
        "unlocked",
        "locked",
        "frozen",
    ]


@pytest.mark.django_db(transaction=True)
def test_the_migrated_schema_is_that_of_the_models():
    before = schema()
    with connection.schema_editor() as editor:
        for model in reversed(MODELS):
            editor.delete_model(model)
    with connection.schema_editor() as editor:
        for model in MODELS:
            editor.create_model(model)
    made = schema()
    try:
        for kind in ("constraints", "indexes"):
            assert made[kind] == before[kind]
        assert made["columns"] == before["columns"]
    finally:
        migrate("0001_initial")
        migrate(None)
        migrate_to_the_end()


@pytest.mark.django_db
@pytest.mark.parametrize("table", TABLES)
def test_tables_have_the_published_columns(table):
    with connection.cursor() as cursor:
        cursor.execute("SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table])
        assert {name for (name,) in cursor.fetchall()} >= set(TABLES[table])


@pytest.mark.django_db
def test_the_combined_moment_is_generated_and_stored():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attgenerated, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = '\"PayloadIOV\"'::regclass AND attname = 'comb_iov'"
        )
        assert cursor.fetchone() == ("s", "numeric(38,19)")


@pytest.mark.django_db
def test_the_lookup_index_covers_what_the_lookup_returns():
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'payload_iov_lookup'")
        (definition,) = cursor.fetchone()
    assert "(payload_list_id, comb_iov DESC NULLS LAST)" in definition
    included = definition.split("INCLUDE (")[1].rstrip(")").split(", ")
    assert set(included) == {
        "payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "extra"
    }  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_rows_that_no_trigger_has_seen_are_counted_by_the_migration(build):
    build.iov(build.list(build.tag()), (0, 0))
    try:
        migrate("0002_statuses")
        with connection.cursor() as cursor:
            cursor.execute('UPDATE "PayloadList" SET iov_count = 9')
    finally:
        migrate_to_the_end()
    assert GlobalTag.objects.get().payload_iov_count == 1
