"""Revisions of global tags with their change log, kept answers, and counts that are carried on at the commit."""

import django.db.models.functions.datetime
from django.db import migrations, models

from cdb_rest import named_sql


class Migration(migrations.Migration):
    dependencies = [
        ("cdb_rest", "0003_lookup_and_counts"),
    ]

    operations = [
        migrations.AddField(
            model_name="globaltag",
            name="revision",
            field=models.BigIntegerField(db_default=0, editable=False),
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
                ("created", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                "db_table": "KeptAnswer",
                "indexes": [models.Index(fields=["created"], name="kept_answer_created")],
                "constraints": [models.UniqueConstraint(fields=("key",), name="kept_answer_key")],
            },
        ),
        # What the triggers count does not depend on the rest, so there is nothing to undo.
        migrations.RunSQL([(named_sql.load("count_triggers"), None)], migrations.RunSQL.noop),
    ]
