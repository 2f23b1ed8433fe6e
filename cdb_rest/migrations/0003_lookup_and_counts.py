"""The lookup's function, and the triggers that keep the counts."""

from django.db import migrations

from cdb_rest import named_sql


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0002_statuses")]
    operations = [
        migrations.RunSQL(
            [(named_sql.load_lookup_function(), None)],
            "DROP FUNCTION cdb_lookup(text, bigint, bigint, boolean, boolean, boolean)",
        ),
        migrations.RunSQL([(named_sql.load("count_triggers"), None)], named_sql.load("drop_count_triggers")),
        # Rows may be there that no trigger has seen.
        migrations.RunSQL([(named_sql.load("repair_list_counts"), None)], migrations.RunSQL.noop),
        migrations.RunSQL([(named_sql.load("carry_counts"), None)], migrations.RunSQL.noop),
        migrations.RunSQL([(named_sql.load("repair_tag_counts"), None)], migrations.RunSQL.noop),
    ]
