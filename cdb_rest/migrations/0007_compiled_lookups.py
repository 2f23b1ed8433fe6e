"""Functions that answer a lookup for a compiled tag, and triggers that mark what other programs update."""

from pathlib import Path

from django.db import migrations


FROZEN = Path(__file__).with_suffix("")
DROP_FUNCTIONS = """
DROP FUNCTION cdb_answer_since;
DROP FUNCTION cdb_window_of(bigint[], bigint, bigint, boolean, boolean);
DROP FUNCTION cdb_rows_of(bigint[], bigint, bigint, boolean, boolean, boolean);
DROP FUNCTION cdb_is_older(xid, bigint);
DROP FUNCTION cdb_database_identity();
"""
DROP_TRIGGERS = """
DROP FUNCTION cdb_mark_changed_list() CASCADE;
DROP FUNCTION cdb_mark_changed_type() CASCADE;
DROP FUNCTION cdb_mark_updated_iovs() CASCADE;
DROP FUNCTION cdb_mark_changed(bigint[]);
"""


def frozen(name: str) -> tuple[tuple[str, None]]:
    """The whole of a file as one piece of SQL, in which % has no meaning."""
    return (((FROZEN / f"{name}.sql").read_text(), None),)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0006_history_index")]

    operations = [
        migrations.RunSQL(frozen("lookup"), DROP_FUNCTIONS),
        migrations.RunSQL(frozen("triggers"), DROP_TRIGGERS),
    ]
