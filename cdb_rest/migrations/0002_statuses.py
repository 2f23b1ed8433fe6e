"""The three statuses that every database has."""

from django.db import migrations

STATUSES = {
    "unlocked": "Everything may change.",
    "locked": "What is defined stays as it is; moments that have no payload yet may get one.",
    "frozen": "Nothing changes any more, ever.",
}


def add(apps, schema_editor):
    model = apps.get_model("cdb_rest", "GlobalTagStatus")
    for name, description in STATUSES.items():
        model.objects.get_or_create(name=name, defaults={"description": description})


def remove(apps, schema_editor):
    apps.get_model("cdb_rest", "GlobalTagStatus").objects.filter(name__in=STATUSES, global_tags=None).delete()


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0001_initial")]
    operations = [migrations.RunPython(add, remove)]
