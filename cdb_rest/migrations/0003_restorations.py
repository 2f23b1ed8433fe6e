from django.db import migrations, models
from django.db.models.functions import Now

ACTIONS = [
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
    ("restore", "Restore"),
    ("delete", "Delete"),
]


class Migration(migrations.Migration):
    """Add the table of restorations, and the action "restore" to the change log."""

    dependencies = [("cdb_rest", "0002_idempotency_record")]

    operations = [
        migrations.AlterField("GlobalTagChange", "action", models.CharField(choices=ACTIONS, max_length=20)),
        migrations.CreateModel(
            name="Restoration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("first_revision", models.BigIntegerField()),
                ("retired_names", models.JSONField(default=list)),
                ("comment", models.CharField(blank=True, max_length=1000)),
            ],
            options={
                "db_table": "Restoration",
                "constraints": [
                    models.UniqueConstraint(fields=["first_revision"], name="restoration_first_revision"),
                ],
            },
        ),
    ]
