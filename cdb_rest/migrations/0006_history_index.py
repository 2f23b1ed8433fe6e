"""The index of the lookup includes the version since which a row is as it is.

It is a migration of its own: readers do not wait while the index is built, because the columns are there already.
"""

from django.db import migrations, models

COLUMNS = (
    "payload_url",
    "checksum",
    "size",
    "major_iov",
    "minor_iov",
    "major_iov_end",
    "minor_iov_end",
    "extra",
)
REPLACE = """
CREATE UNIQUE INDEX payload_iov_lookup_new ON "PayloadIOV" (payload_list_id, comb_iov DESC NULLS LAST) INCLUDE ({columns});
DROP INDEX payload_iov_lookup;
ALTER INDEX payload_iov_lookup_new RENAME TO payload_iov_lookup;
"""


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0005_history")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    REPLACE.format(columns=", ".join([*COLUMNS, "added_in"])), REPLACE.format(columns=", ".join(COLUMNS))
                )
            ],
            [
                migrations.RemoveConstraint("payloadiov", "payload_iov_lookup"),
                migrations.AddConstraint(
                    "payloadiov",
                    models.UniqueConstraint(
                        models.F("payload_list"),
                        models.OrderBy(models.F("comb_iov"), descending=True, nulls_last=True),
                        include=(*COLUMNS, "added_in"),
                        name="payload_iov_lookup",
                    ),
                ),
            ],
        ),
    ]
