"""Add a column, for which PostgreSQL takes an exclusive lock on the table."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0001_conditions_database")]

    operations = [
        migrations.RunSQL(
            'ALTER TABLE "GlobalTag" ADD COLUMN later integer', 'ALTER TABLE "GlobalTag" DROP COLUMN later'
        )
    ]
