"""Lookups from compiled payload lists, instead of compiled global tags."""

from pathlib import Path
from typing import Any

from django.db import migrations

FROZEN = Path(__file__).with_suffix("")
FIRST, SHARED = FROZEN.parent / "0001_conditions_database", FROZEN.parent / "0003_shared_lists"


def former() -> list[Any]:
    """The functions of the earlier migrations, created again."""
    first = (FIRST / "compiled.sql").read_text().replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    return [
        ("DROP FUNCTION cdb_answer_compiled", None),
        (first, None),
        ((SHARED / "compiled.sql").read_text(), None),
    ]


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0004_uses")]

    operations = [migrations.RunSQL([((FROZEN / "answer.sql").read_text(), None)], former())]
