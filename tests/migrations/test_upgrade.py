"""An old database that is upgraded is the same as a new one."""

import shutil
import sys
import uuid

import pytest
from django.core.management import call_command
from django.db import connection

from cdb.env import ROOT
from cdb_rest.models import DatabaseProperty, GlobalTag, GlobalTagStatus, PayloadIOV
from tests.migrations.records import MIGRATIONS, RECORDED, migration_names
from tests.migrations.schema import differences, read_schema

# After all that there will ever be.
LATER = "9999_later"
LATER_MIGRATION = """
from pathlib import Path

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "{newest}")]
    operations = [migrations.RunSQL([(Path(__file__).with_suffix("").joinpath("later.sql").read_text(), None)])]
"""
LATER_SQL = """
ALTER TABLE "GlobalTag" ADD COLUMN later integer DEFAULT 1 CONSTRAINT later_is_positive CHECK (later > 0);
CREATE INDEX global_tag_later ON "GlobalTag" (later);
CREATE OR REPLACE FUNCTION cdb_version(revision bigint, updated timestamptz, row_version xid) RETURNS text
LANGUAGE sql STABLE
RETURN revision || '-later-' || row_version;
"""


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


def forget(package):
    """Let Python import the migrations of a package anew."""
    for module in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[module]


@pytest.fixture
def later(tmp_path, monkeypatch, settings):
    """The directory of a copy of the migrations with one more, from which Django takes them."""
    # A name that no test has imported before.
    package = f"migrations_{uuid.uuid4().hex}"
    directory = tmp_path / package
    shutil.copytree(ROOT / MIGRATIONS, directory, ignore=shutil.ignore_patterns("__pycache__"))
    (directory / f"{LATER}.py").write_text(LATER_MIGRATION.format(newest=migration_names()[-1]))
    (directory / LATER).mkdir()
    (directory / LATER / "later.sql").write_text(LATER_SQL)
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.MIGRATION_MODULES = {"cdb_rest": package}
    yield directory
    forget(package)


@pytest.mark.parametrize("name", migration_names())
def test_an_upgraded_database_is_the_same_as_a_new_one(restored, new_database, name):
    old, new = restored(name), new_database()
    assert differences(migrate(old), migrate(new)) == []
    for model, fields in ((GlobalTagStatus, ("name", "description")), (DatabaseProperty, ("name", "value"))):
        rows = [list(model.objects.using(one.alias).order_by("name").values_list(*fields)) for one in (old, new)]
        assert rows[0] == rows[1]
    tag = GlobalTag.objects.using(old.alias).get(name="tiny")
    assert tag.payload_iov_count == PayloadIOV.objects.using(old.alias).count() == 100


def test_an_upgrade_by_a_later_migration_is_compared_with_a_new_database(restored, new_database, later):
    old = restored(migration_names()[-1])
    with old.cursor() as cursor:
        before = read_schema(cursor)
    new = migrate(new_database())
    assert [line.split(":")[0] for line in differences(before, new)] == [
        'column "GlobalTag".later',
        'constraint "GlobalTag" later_is_positive',
        'default "GlobalTag".later',
        "function cdb_version(bigint,timestamp with time zone,xid)",
        "index global_tag_later",
    ]
    assert differences(migrate(old), new) == []


def test_sql_that_was_edited_after_a_database_had_executed_it_is_a_difference(restored, new_database, later):
    old = restored(migration_names()[-1])
    migrate(old)
    file = later / LATER / "later.sql"
    file.write_text(file.read_text().replace("-later-", "-edited-"))
    forget(later.name)
    lines = differences(migrate(old), migrate(new_database()))
    assert len(lines) == 1
    assert lines[0].startswith("function cdb_version(bigint,timestamp with time zone,xid): upgraded: CREATE ")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("CREATE TABLE more ()", ["table more"]),
        ('ALTER TABLE "IdempotencyRecord" SET (fillfactor = 50)', ['table "IdempotencyRecord"']),
        ('ALTER TABLE "IdempotencyRecord" ALTER key DROP NOT NULL', ['column "IdempotencyRecord".key']),
        ('ALTER TABLE "IdempotencyRecord" ALTER key TYPE varchar(254)', ['column "IdempotencyRecord".key']),
        ('ALTER TABLE "IdempotencyRecord" ALTER created SET DEFAULT now()', ['default "IdempotencyRecord".created']),
        (
            'ALTER TABLE "IdempotencyRecord" RENAME CONSTRAINT idempotency_record_key TO other',
            [
                'constraint "IdempotencyRecord" idempotency_record_key',
                'constraint "IdempotencyRecord" other',
                "index idempotency_record_key",
                "index other",
            ],
        ),
        (
            'ALTER TABLE "PayloadIOV" DROP CONSTRAINT payload_iov_not_negative',
            ['constraint "PayloadIOV" payload_iov_not_negative'],
        ),
        ("DROP INDEX idempotency_record_created", ["index idempotency_record_created"]),
        (
            'ALTER TABLE "PayloadIOV" DISABLE TRIGGER cdb_count_updated_iovs',
            ['trigger "PayloadIOV" cdb_count_updated_iovs'],
        ),
        (
            "ALTER FUNCTION cdb_version(bigint, timestamptz, xid) COST 7",
            ["function cdb_version(bigint,timestamp with time zone,xid)"],
        ),
        ('ALTER SEQUENCE "IdempotencyRecord_id_seq" INCREMENT 2', ['sequence "IdempotencyRecord_id_seq"']),
        ("CREATE VIEW seen AS SELECT 1 AS one", ["column seen.one", "table seen"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_kind_of_object_is_compared(statement, expected):
    with connection.cursor() as cursor:
        before = read_schema(cursor)
        cursor.execute(statement)
        assert [line.split(":")[0] for line in differences(before, read_schema(cursor))] == expected
