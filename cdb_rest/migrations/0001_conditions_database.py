"""The tables, functions and triggers of a conditions database, its three statuses, and the mode of its intervals."""

from pathlib import Path
from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now

FROZEN = Path(__file__).with_suffix("")
OPEN = 9223372036854775807
STATUSES = {
    "unlocked": "Everything may change.",
    "locked": "What is defined stays as it is; moments that have no payload yet may get one.",
    "frozen": "Nothing changes any more, ever.",
}


def frozen(name: str) -> tuple[tuple[str, None]]:
    """The whole of a file as one piece of SQL, in which % has no meaning."""
    return (((FROZEN / f"{name}.sql").read_text(), None),)


def add_statuses(apps: Any, schema_editor: Any) -> None:
    statuses = apps.get_model("cdb_rest", "GlobalTagStatus").objects.using(schema_editor.connection.alias)
    for name, description in STATUSES.items():
        statuses.create(name=name, description=description)


def record_mode(apps: Any, schema_editor: Any) -> None:
    properties = apps.get_model("cdb_rest", "DatabaseProperty").objects.using(schema_editor.connection.alias)
    properties.create(name="iov_mode", value=settings.CDB_IOV_MODE)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="GlobalTagStatus",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("description", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "db_table": "GlobalTagStatus",
                "constraints": [models.UniqueConstraint(fields=("name",), name="global_tag_status_name")],
            },
        ),
        migrations.CreateModel(
            name="GlobalTag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("author", models.CharField(blank=True, db_default="", default="", max_length=80)),
                ("description", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("updated", models.DateTimeField(db_default=Now(), editable=False)),
                ("payload_lists_count", models.BigIntegerField(db_default=0, editable=False)),
                ("payload_iov_count", models.BigIntegerField(db_default=0, editable=False)),
                (
                    "status",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="global_tags",
                        to="cdb_rest.globaltagstatus",
                    ),
                ),
                ("revision", models.BigIntegerField(db_default=0, editable=False)),
                (
                    "last_modified",
                    models.DateTimeField(
                        db_default=models.Func(
                            template="(date_trunc('second', CURRENT_TIMESTAMP) + interval '1 second')",
                            output_field=models.DateTimeField(),
                        ),
                        editable=False,
                    ),
                ),
            ],
            options={
                "db_table": "GlobalTag",
                "constraints": [models.UniqueConstraint(fields=("name",), name="global_tag_name")],
            },
        ),
        migrations.CreateModel(
            name="PayloadType",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("description", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "db_table": "PayloadType",
                "constraints": [models.UniqueConstraint(fields=("name",), name="payload_type_name")],
            },
        ),
        migrations.CreateModel(
            name="PayloadList",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("description", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("updated", models.DateTimeField(db_default=Now(), editable=False)),
                ("iov_count", models.BigIntegerField(db_default=0, editable=False)),
                (
                    "global_tag",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payload_lists",
                        to="cdb_rest.globaltag",
                    ),
                ),
                (
                    "payload_type",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payload_lists",
                        to="cdb_rest.payloadtype",
                    ),
                ),
            ],
            options={
                "db_table": "PayloadList",
                "constraints": [
                    models.UniqueConstraint(fields=("name",), name="payload_list_name"),
                    models.UniqueConstraint(
                        fields=("global_tag", "payload_type"), name="payload_list_one_per_tag_and_type"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PayloadIOV",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("payload_url", models.CharField(max_length=255)),
                ("checksum", models.CharField(blank=True, db_default="", default="", max_length=255)),
                ("size", models.BigIntegerField(db_default=0, default=0)),
                ("major_iov", models.BigIntegerField()),
                ("minor_iov", models.BigIntegerField()),
                ("major_iov_end", models.BigIntegerField(db_default=OPEN, default=OPEN)),
                ("minor_iov_end", models.BigIntegerField(db_default=OPEN, default=OPEN)),
                ("extra", models.CharField(max_length=19, null=True)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("updated", models.DateTimeField(db_default=Now(), editable=False)),
                (
                    "comb_iov",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func(
                            models.F("major_iov"),
                            models.F("minor_iov"),
                            template="(%(expressions)s * 0.0000000000000000001)",
                            arg_joiner=" + ",
                            output_field=models.DecimalField(decimal_places=19, max_digits=38),
                        ),
                        output_field=models.DecimalField(decimal_places=19, max_digits=38),
                    ),
                ),
                (
                    "payload_list",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payload_iovs",
                        to="cdb_rest.payloadlist",
                    ),
                ),
            ],
            options={
                "db_table": "PayloadIOV",
                "constraints": [
                    models.UniqueConstraint(
                        models.F("payload_list"),
                        models.OrderBy(models.F("comb_iov"), descending=True, nulls_last=True),
                        include=(
                            "payload_url",
                            "checksum",
                            "size",
                            "major_iov",
                            "minor_iov",
                            "major_iov_end",
                            "minor_iov_end",
                            "extra",
                        ),
                        name="payload_iov_lookup",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("major_iov__gte", 0),
                            ("major_iov_end__gte", 0),
                            ("minor_iov__gte", 0),
                            ("minor_iov_end__gte", 0),
                            ("size__gte", 0),
                        ),
                        name="payload_iov_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("major_iov_end__gt", models.F("major_iov")),
                            models.Q(
                                ("major_iov_end", models.F("major_iov")), ("minor_iov_end__gte", models.F("minor_iov"))
                            ),
                            _connector="OR",
                        ),
                        name="payload_iov_end_not_before_start",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("extra__regex", "^[0-9]+$")), name="payload_iov_revision_is_digits"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GlobalTagChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("global_tag", models.CharField(max_length=80)),
                ("revision", models.BigIntegerField()),
                ("created", models.DateTimeField()),
                ("actor", models.CharField(max_length=255)),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("create", "Create"),
                            ("clone", "Clone"),
                            ("seed", "Seed"),
                            ("status", "Status"),
                            ("attach_list", "Attach List"),
                            ("delete_list", "Delete List"),
                            ("attach_iov", "Attach Iov"),
                            ("delete_iov", "Delete Iov"),
                            ("bulk", "Bulk"),
                            ("insert", "Insert"),
                            ("repair", "Repair"),
                            ("delete", "Delete"),
                        ],
                        max_length=20,
                    ),
                ),
                ("comment", models.CharField(blank=True, max_length=1000)),
                ("payload_iovs_before", models.BigIntegerField()),
                ("payload_iovs_after", models.BigIntegerField()),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
            ],
            options={
                "verbose_name": "change of a global tag",
                "verbose_name_plural": "changes of global tags",
                "db_table": "GlobalTagChange",
                "constraints": [
                    models.UniqueConstraint(fields=("global_tag", "revision"), name="global_tag_change_revision")
                ],
            },
        ),
        migrations.CreateModel(
            name="KeptAnswer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=255)),
                ("request_digest", models.CharField(max_length=64)),
                ("answer", models.TextField()),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "db_table": "KeptAnswer",
                "indexes": [models.Index(fields=["created"], name="kept_answer_created")],
                "constraints": [models.UniqueConstraint(fields=("key",), name="kept_answer_key")],
            },
        ),
        migrations.CreateModel(
            name="DatabaseProperty",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("value", models.CharField(max_length=255)),
            ],
            options={"db_table": "DatabaseProperty"},
        ),
        migrations.RunSQL(
            frozen("cdb_lookup"), "DROP FUNCTION cdb_lookup(text, bigint, bigint, boolean, boolean, boolean)"
        ),
        migrations.RunSQL(frozen("cdb_version"), "DROP FUNCTION cdb_version(bigint, timestamptz, xid)"),
        migrations.RunSQL(frozen("cdb_window"), "DROP FUNCTION cdb_window(text, bigint, bigint, boolean, boolean)"),
        migrations.RunSQL(
            frozen("cdb_answer"),
            "DROP FUNCTION cdb_answer(text, bigint, bigint, boolean, boolean, boolean, text[], timestamptz, boolean)",
        ),
        # The triggers go with their functions.
        migrations.RunSQL(
            frozen("count_triggers"), "DROP FUNCTION cdb_count_iovs() CASCADE; DROP FUNCTION cdb_count_lists() CASCADE"
        ),
        migrations.RunPython(add_statuses, migrations.RunPython.noop),
        migrations.RunPython(record_mode, migrations.RunPython.noop),
    ]
