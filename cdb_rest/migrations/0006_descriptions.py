"""The history of payload types, and one more action of the change log: another author or description of a global tag."""

from django.db import migrations, models
from django.db.models.functions import Now

ACTIONS = (
    *("create", "clone", "adopt", "seed", "status", "attach_list", "delete_list", "attach_iov", "delete_iov", "bulk", "insert"),
    *("clear", "limits", "describe", "revert", "repair", "restore", "delete"),
)


def optional_text(length: int) -> models.CharField:  # type: ignore[type-arg]  # Django has no type arguments at run time
    """A column for a text that may be empty."""
    return models.CharField(blank=True, default="", max_length=length)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0005_timelines")]

    operations = [
        migrations.CreateModel(
            "PayloadTypeChange",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("payload_type", models.CharField(max_length=80)),
                ("created", models.DateTimeField(db_default=Now(), editable=False)),
                ("actor", models.CharField(max_length=255)),
                ("action", models.CharField(max_length=20)),
                ("comment", optional_text(1000)),
                ("before", optional_text(255)),
                ("after", optional_text(255)),
            ],
            {
                "db_table": "PayloadTypeChange",
                "indexes": [models.Index(fields=["payload_type"], name="payload_type_change_type")],
            },
        ),
        migrations.AlterField(
            "globaltagchange",
            "action",
            models.CharField(choices=[(name, name.replace("_", " ").title()) for name in ACTIONS], max_length=20),
        ),
    ]
