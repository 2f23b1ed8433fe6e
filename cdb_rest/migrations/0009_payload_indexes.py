"""Indexes with which the uses of a payload, and the change with a number, are found."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("cdb_rest", "0008_analysis"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="globaltagchange",
            index=models.Index(fields=["number"], name="global_tag_change_number"),
        ),
        migrations.AddIndex(
            model_name="payloadiov",
            index=models.Index(fields=["payload_url"], name="payload_iov_url", opclasses=["varchar_pattern_ops"]),
        ),
        migrations.AddIndex(
            model_name="payloadiov",
            index=models.Index(fields=["checksum"], name="payload_iov_checksum"),
        ),
        migrations.AddIndex(
            model_name="payloadiovhistory",
            index=models.Index(
                condition=models.Q(("row_start__isnull", True)),
                fields=["payload_url"],
                name="payload_iov_history_url",
                opclasses=["varchar_pattern_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="payloadiovhistory",
            index=models.Index(
                condition=models.Q(("row_start__isnull", True)),
                fields=["checksum"],
                name="payload_iov_history_checksum",
            ),
        ),
    ]
