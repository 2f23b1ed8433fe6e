"""One small index for the uses of payloads on each table of IOVs, instead of one on the URLs and one on the checksums."""

from typing import Any

from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models

FILTERS = "text_bloom_ops(n_distinct_per_range=600, false_positive_rate=0.01)"


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
    dependencies = [("cdb_rest", "0003_shared_lists")]

    # The new ones first: dropping an index blocks all readers until the commit.
    operations = [
        migrations.AddIndex("payloadiov", uses_index("payload_iov_uses")),
        migrations.AddIndex(
            "payloadiovhistory", uses_index("payload_iov_history_uses", models.Q(row_start__isnull=True))
        ),
        migrations.RemoveIndex("payloadiov", "payload_iov_url"),
        migrations.RemoveIndex("payloadiov", "payload_iov_checksum"),
        migrations.RemoveIndex("payloadiovhistory", "payload_iov_history_url"),
        migrations.RemoveIndex("payloadiovhistory", "payload_iov_history_checksum"),
    ]
