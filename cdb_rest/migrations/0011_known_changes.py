"""Function that answers a lookup for a compiled tag if it is known which lists have changed."""

from pathlib import Path

from django.db import migrations


FROZEN = Path(__file__).with_suffix("")


def frozen(name: str) -> tuple[tuple[str, None]]:
    """The whole of a file as one piece of SQL, in which % has no meaning."""
    return (((FROZEN / f"{name}.sql").read_text(), None),)


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0010_version_index")]

    operations = [migrations.RunSQL(frozen("lookup"), "DROP FUNCTION cdb_answer_known;")]
