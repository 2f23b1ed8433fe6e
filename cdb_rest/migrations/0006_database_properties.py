"""Facts about the data: at first the mode in which the ends of its intervals are written."""

from django.conf import settings
from django.db import migrations, models


def record_mode(apps, schema_editor):
    apps.get_model("cdb_rest", "DatabaseProperty").objects.create(name="iov_mode", value=settings.CDB_IOV_MODE)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0005_conditional_answers")]
    operations = [
        migrations.CreateModel(
            name="DatabaseProperty",
            fields=[
                ("name", models.CharField(max_length=80, primary_key=True, serialize=False)),
                ("value", models.CharField(max_length=255)),
            ],
            options={"db_table": "DatabaseProperty"},
        ),
        migrations.RunPython(record_mode, migrations.RunPython.noop),
    ]
