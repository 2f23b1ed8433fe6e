"""SQL functions for the comparison of global tags, their coverage, and the explanation of a lookup."""

from pathlib import Path

from django.db import migrations


FROZEN = Path(__file__).with_suffix("")
DROP_MOMENTS = """
DROP AGGREGATE cdb_latest(anycompatible);
DROP FUNCTION cdb_second(anycompatible, anycompatible);
DROP FUNCTION cdb_end(bigint, bigint, boolean);
DROP FUNCTION cdb_end_json(numeric, boolean);
DROP FUNCTION cdb_moment_json(numeric);
"""
DROP_POINT = "DROP FUNCTION cdb_point_at(bigint, text, bigint, bigint, bigint, boolean);"


def frozen(name: str) -> tuple[tuple[str, None]]:
    """The whole of a file as one piece of SQL, in which % has no meaning."""
    return (((FROZEN / f"{name}.sql").read_text(), None),)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0007_compiled_lookups")]

    operations = [
        migrations.RunSQL(frozen("moments"), DROP_MOMENTS),
        migrations.RunSQL(frozen("point_at"), DROP_POINT),
    ]
