"""Index with which the change that created a version of a payload list is found."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("cdb_rest", "0009_payload_indexes"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="payloadlistversion",
            index=models.Index(fields=["payload_list_id", "version"], name="payload_list_version"),
        ),
    ]
