"""Limits of global tags; creators of detached payload lists and IOVs; two more actions of the change log."""

from django.db import migrations, models

ACTIONS = (
    *("create", "clone", "seed", "status", "attach_list", "delete_list", "attach_iov", "delete_iov", "bulk", "insert"),
    *("clear", "limits", "revert", "repair", "restore", "delete"),
)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0001_conditions_database")]

    operations = [
        migrations.AddField(
            "globaltag", "closed_until", models.DecimalField(decimal_places=19, max_digits=38, null=True)
        ),
        migrations.AddField("globaltag", "largest_major", models.BigIntegerField(null=True)),
        *(
            migrations.AddField(model, name, models.CharField(editable=False, max_length=length, null=True))
            for model in ("payloadiov", "payloadlist")
            for name, length in (("creator", 255), ("left_tag", 80))
        ),
        migrations.AlterField(
            "globaltagchange",
            "action",
            models.CharField(choices=[(name, name.replace("_", " ").title()) for name in ACTIONS], max_length=20),
        ),
    ]
