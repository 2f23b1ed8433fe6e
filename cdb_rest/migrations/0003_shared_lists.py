"""Payload lists that share the rows of another list, their base, in one of its versions; one index for the uses of payloads."""

from pathlib import Path
from typing import Any

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

FROZEN = Path(__file__).with_suffix("")
FIRST = FROZEN.parent / "0001_conditions_database"
FUNCTIONS = ("rows", "view", "triggers", "lookup", "past", "compiled", "point_at")
# What they replace, in an order in which each finds the functions that it calls.
REPLACED = ("lookup", "window", "past", "compiled", "point_at", "mark_triggers")
# Stands for the present in the functions: all rows that a list has now.
PRESENT = 2147483646
FILTERS = "text_bloom_ops(n_distinct_per_range=600, false_positive_rate=0.01)"

def read(*names: str) -> list[Any]:
    """Whole files as pieces of SQL, in which % has no meaning."""
    return [((FROZEN / f"{name}.sql").read_text(), None) for name in names]


def replaced() -> list[Any]:
    """The functions of the first migration, created again."""
    texts = [(FIRST / f"{name}.sql").read_text() for name in REPLACED]
    return [(text.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"), None) for text in texts]


def check_nothing_is_shared(apps: Any, editor: Any) -> None:
    """Raise `RuntimeError` if a payload list shares rows, which it would lose without this migration."""
    for model in ("PayloadList", "PayloadListVersion"):
        rows = apps.get_model("cdb_rest", model).objects.using(editor.connection.alias)
        if rows.filter(base_list_id__isnull=False).exists():
            raise RuntimeError("payload lists share rows, so this migration cannot be taken back")


def columns(model: str, prefix: str) -> list[Any]:
    """The base of a payload list, or of one of its versions, with a constraint and an index for its users."""
    return [
        migrations.AddField(model, "base_list_id", models.BigIntegerField(editable=False, null=True)),
        migrations.AddField(model, "base_version", models.IntegerField(editable=False, null=True)),
        migrations.AddConstraint(
            model,
            models.CheckConstraint(
                name=f"{prefix}_base",
                condition=Q(base_list_id__isnull=True, base_version__isnull=True)
                | Q(base_list_id__isnull=False, base_version__isnull=False),
            ),
        ),
        migrations.AddIndex(
            model,
            models.Index(
                name=f"{prefix}_of_base", fields=["base_list_id"], condition=Q(base_list_id__isnull=False)
            ),
        ),
    ]


def uses_index(name: str, condition: models.Q | None = None) -> Any:
    """An index with Bloom filters of the URLs and of the checksums, and the first and the last URL, for each 16 pages."""
    return BrinIndex(
        name=name,
        fields=["payload_url", "checksum", "payload_url"],
        opclasses=[FILTERS, FILTERS, 'COLLATE "C" text_minmax_ops'],
        pages_per_range=16,
        condition=condition,
    )


class Migration(migrations.Migration):
    dependencies = [("cdb_rest", "0002_limits_and_creators")]

    operations = [
        # The new indexes first, because what follows blocks all readers until the commit.
        migrations.AddIndex("payloadiov", uses_index("payload_iov_uses")),
        migrations.AddIndex(
            "payloadiovhistory", uses_index("payload_iov_history_uses", models.Q(row_start__isnull=True))
        ),
        *columns("payloadlist", "payload_list"),
        *columns("payloadlistversion", "payload_list_version"),
        migrations.AddField(
            "payloadlist",
            "rows_list_id",
            models.GeneratedField(
                db_persist=True,
                expression=Coalesce(F("base_list_id"), F("id")),
                output_field=models.BigIntegerField(),
            ),
        ),
        migrations.AddField(
            "payloadlist",
            "rows_version",
            models.GeneratedField(
                db_persist=True,
                expression=Coalesce(F("base_version"), Value(PRESENT)),
                output_field=models.IntegerField(),
            ),
        ),
        migrations.AddField("payloadlist", "edited", models.BigIntegerField(db_default=0, default=0, editable=False)),
        migrations.RemoveIndex("payloadiov", "payload_iov_url"),
        migrations.RemoveIndex("payloadiov", "payload_iov_checksum"),
        migrations.RemoveIndex("payloadiovhistory", "payload_iov_history_url"),
        migrations.RemoveIndex("payloadiovhistory", "payload_iov_history_checksum"),
        # Of a view, Django needs to know only that it exists.
        migrations.CreateModel(
            "ListedPayloadIOV",
            [("id", models.BigAutoField(primary_key=True))],
            options={"db_table": "ListedPayloadIOV", "managed": False},
        ),
        migrations.RunSQL(read(*FUNCTIONS), [*read("drop_functions"), *replaced()]),
        migrations.RunPython(migrations.RunPython.noop, check_nothing_is_shared),
    ]
