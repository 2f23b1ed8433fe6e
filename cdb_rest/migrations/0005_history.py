"""The history of payload lists, IOVs and tags, and lookups in the past."""

from pathlib import Path

import django.db.models.functions.datetime
from django.db import migrations, models


FROZEN = Path(__file__).with_suffix("")


def frozen(name: str) -> tuple[tuple[str, None]]:
    """The whole of a file as one piece of SQL, in which % has no meaning."""
    return (((FROZEN / f"{name}.sql").read_text(), None),)


class Migration(migrations.Migration):
    dependencies = [
        ("cdb_rest", "0004_access"),
    ]

    operations = [
        migrations.RunSQL(frozen("functions"), "DROP FUNCTION cdb_fork_node(integer, integer)"),
        migrations.CreateModel(
            name="DeletedGlobalTag",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=80)),
                ("author", models.CharField(max_length=80)),
                ("description", models.CharField(max_length=255)),
                ("created", models.DateTimeField()),
                ("deleted", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "DeletedGlobalTag",
            },
        ),
        migrations.CreateModel(
            name="PayloadIOVHistory",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "payload_list_id",
                        "node",
                        "comb_iov",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("payload_list_id", models.BigIntegerField()),
                ("node", models.IntegerField()),
                ("comb_iov", models.DecimalField(decimal_places=19, max_digits=38)),
                ("until", models.DecimalField(decimal_places=19, max_digits=38, null=True)),
                ("added_in", models.IntegerField()),
                ("removed_in", models.IntegerField()),
                ("row_start", models.DecimalField(decimal_places=19, max_digits=38, null=True)),
                ("iov_id", models.BigIntegerField(null=True)),
                ("payload_url", models.CharField(max_length=255, null=True)),
                ("checksum", models.CharField(max_length=255, null=True)),
                ("size", models.BigIntegerField(null=True)),
                ("major_iov", models.BigIntegerField(null=True)),
                ("minor_iov", models.BigIntegerField(null=True)),
                ("major_iov_end", models.BigIntegerField(null=True)),
                ("minor_iov_end", models.BigIntegerField(null=True)),
                ("extra", models.CharField(max_length=19, null=True)),
                ("created", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "PayloadIOVHistory",
            },
        ),
        migrations.CreateModel(
            name="PayloadListMembership",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tag_id", models.BigIntegerField()),
                ("payload_list_id", models.BigIntegerField()),
                ("name", models.CharField(max_length=100)),
                ("payload_type", models.CharField(max_length=80)),
                ("created", models.DateTimeField()),
                ("added_in", models.BigIntegerField()),
                ("removed_in", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "PayloadListMembership",
            },
        ),
        migrations.CreateModel(
            name="PayloadListVersion",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "payload_list_id", "number", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("payload_list_id", models.BigIntegerField()),
                ("number", models.BigIntegerField()),
                ("version", models.IntegerField()),
                ("iov_count", models.BigIntegerField()),
            ],
            options={
                "db_table": "PayloadListVersion",
            },
        ),
        migrations.RenameField("globaltagchange", "before", "logged_before"),
        migrations.RenameField("globaltagchange", "after", "logged_after"),
        migrations.AlterField("globaltagchange", "logged_before", models.JSONField(null=True)),
        migrations.AlterField("globaltagchange", "logged_after", models.JSONField(null=True)),
        # Changes of the earlier format have no documents that could be read backwards, so they get empty ones.
        migrations.RunSQL(
            migrations.RunSQL.noop,
            """
            UPDATE "GlobalTagChange" SET logged_before = coalesce(logged_before, '{}'),
                logged_after = coalesce(logged_after, '{}')
            """,
        ),
        migrations.AddField(
            model_name="globaltagchange",
            name="has_history",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="globaltagchange",
            name="source",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="globaltagchange",
            name="status",
            field=models.CharField(blank=True, db_default="", default="", max_length=80),
        ),
        migrations.AddField(
            model_name="globaltagchange",
            name="tag_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="payloadiov",
            name="added_in",
            field=models.IntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="payloadlist",
            name="version",
            field=models.IntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AlterField(
            model_name="globaltagchange",
            name="action",
            field=models.CharField(
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
                    ("revert", "Revert"),
                    ("repair", "Repair"),
                    ("restore", "Restore"),
                    ("delete", "Delete"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            model_name="globaltagchange",
            index=models.Index(fields=["global_tag", "created"], name="global_tag_change_created"),
        ),
        migrations.AddConstraint(
            model_name="payloadiovhistory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "node",
                        models.Func(
                            models.F("added_in"),
                            models.F("removed_in"),
                            function="cdb_fork_node",
                            output_field=models.IntegerField(),
                        ),
                    )
                ),
                name="payload_iov_history_node",
            ),
        ),
        migrations.AddConstraint(
            model_name="payloadiovhistory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("added_in__lt", models.F("removed_in")),
                    models.Q(("until__isnull", True), ("until__gt", models.F("comb_iov")), _connector="OR"),
                ),
                name="payload_iov_history_not_empty",
            ),
        ),
        migrations.AddIndex(
            model_name="payloadlistmembership",
            index=models.Index(fields=["tag_id"], name="payload_list_membership_tag"),
        ),
        migrations.AddIndex(
            model_name="payloadlistmembership",
            index=models.Index(fields=["payload_list_id"], name="payload_list_membership_list"),
        ),
        # Existing changes are numbered in the order of their ids.
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    frozen("numbers"),
                    'ALTER TABLE "GlobalTagChange" DROP COLUMN number; DROP SEQUENCE cdb_change_number',
                )
            ],
            [
                migrations.AddField(
                    "globaltagchange",
                    "number",
                    models.BigIntegerField(),
                )
            ],
        ),
        migrations.RunSQL(frozen("present_state"), migrations.RunSQL.noop),
        migrations.RunSQL(
            frozen("lookup_at"),
            """
            DROP FUNCTION cdb_answer_at(text, bigint, timestamptz, bigint, bigint, boolean, boolean, boolean, text[], boolean);
            DROP FUNCTION cdb_window_at(bigint, bigint, bigint, bigint, boolean, boolean);
            DROP FUNCTION cdb_area_at(bigint, integer, numeric);
            DROP FUNCTION cdb_lookup_at(bigint, bigint, bigint, bigint, boolean, boolean, boolean);
            DROP FUNCTION cdb_version_at(bigint, bigint);
            DROP FUNCTION cdb_history_entry(bigint, integer, numeric);
            """,
        ),
    ]
