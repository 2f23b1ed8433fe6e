"""The timeline of the server for which a restoration was recorded; a promoted standby starts a new range of revisions."""

from pathlib import Path
from typing import Any

from django.db import migrations, models

FROZEN = Path(__file__).with_suffix("")


def read(name: str) -> list[Any]:
    """A whole file as a piece of SQL, in which % has no meaning."""
    return [((FROZEN / f"{name}.sql").read_text(), None)]


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0004_adoption")]

    operations = [
        migrations.AddField("restoration", "timeline", models.TextField(editable=False, null=True)),
        migrations.RunSQL(read("revision_floor"), read("drop_functions")),
        migrations.RunSQL(read("first_timeline"), migrations.RunSQL.noop),
    ]
