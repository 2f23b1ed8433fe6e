"""What caches need: when a tag was last modified, and lookups that come with the version of their tag."""

from django.db import migrations, models

import cdb_rest.models.global_tag
from cdb_rest import named_sql


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0004_revisions_and_changes")]
    operations = [
        migrations.AddField(
            model_name="globaltag",
            name="last_modified",
            field=models.DateTimeField(db_default=cdb_rest.models.global_tag.NextSecond(), editable=False),
        ),
        migrations.RunSQL(
            [(named_sql.load("version_function"), None)], "DROP FUNCTION cdb_version(bigint, timestamptz, xid)"
        ),
        migrations.RunSQL(
            [(named_sql.load("window_function"), None)],
            "DROP FUNCTION cdb_window(text, bigint, bigint, boolean, boolean)",
        ),
        migrations.RunSQL(
            [(named_sql.load("answer_function"), None)],
            "DROP FUNCTION cdb_answer(text, bigint, bigint, boolean, boolean, boolean, text[], timestamptz, boolean)",
        ),
    ]
