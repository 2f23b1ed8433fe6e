"""Payload IOVs: payload files and their intervals of validity."""

import re
from typing import Any, cast

from django.contrib.postgres.indexes import BrinIndex
from django.db import connection, models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from cdb_rest import named_sql
from cdb_rest.models.payload_list import PayloadList
from cdb_rest.rules.moment import OPEN
from cdb_rest.rules.names import NAME_LENGTH, REVISION_LENGTH, TEXT_LENGTH

PLACEHOLDER = re.compile(r"\{[a-z._]+\}")


def uses_index(name: str, condition: Q | None = None) -> BrinIndex:
    """The index that finds the uses of a payload by its URL, by the beginning of URLs, or by its checksum.

    For each 16 pages of the table, about 600 rows, it has Bloom filters of the URLs and of the checksums, and the first and the
    last URL. It costs new rows almost nothing: VACUUM adds new pages to it. A search reads the whole index, and the new pages.
    """
    filters = "text_bloom_ops(n_distinct_per_range=600, false_positive_rate=0.01)"
    return BrinIndex(
        name=name,
        fields=["payload_url", "checksum", "payload_url"],
        opclasses=[filters, filters, 'COLLATE "C" text_minmax_ops'],
        pages_per_range=16,
        condition=condition,
    )


# major + minor / 10^19, exact for all pairs of 64-bit numbers. A product with 10^-19 keeps all digits; PostgreSQL would
# round a quotient. It is written with Django's classes only, so that migrations import nothing of the service.
COMBINED_MOMENT = Func(
    F("major_iov"),
    F("minor_iov"),
    template="(%(expressions)s * 0.0000000000000000001)",
    arg_joiner=" + ",
    output_field=models.DecimalField(max_digits=38, decimal_places=19),
)

# The columns that describe the payload, by their names in the API. They are copied whenever a row is inserted, split, cloned
# or logged. Export and import files have fixed columns.
PAYLOAD_COLUMNS = {"payload_url": "payload_url", "checksum": "checksum", "size": "size", "revision": "extra"}


class PayloadIOV(models.Model):
    """A payload file and its interval of validity, as a row of a payload list or detached.

    The end is stored in the wire format: exclusive in continuous mode, inclusive in discrete mode. An open interval has
    the end (2^63-1, 2^63-1) in both modes. The column `extra` is the revision of the payload. Only a detached row that was
    adopted from nopayloaddb may have a negative number, or an end before its start.
    """

    payload_url = models.CharField(max_length=TEXT_LENGTH)
    checksum = models.CharField(max_length=TEXT_LENGTH, blank=True, default="", db_default="")
    size = models.BigIntegerField(default=0, db_default=0)
    major_iov = models.BigIntegerField()
    minor_iov = models.BigIntegerField()
    major_iov_end = models.BigIntegerField(default=OPEN, db_default=OPEN)
    minor_iov_end = models.BigIntegerField(default=OPEN, db_default=OPEN)
    # No separate index, because this is the first column of the lookup index.
    payload_list = models.ForeignKey(
        PayloadList, on_delete=models.PROTECT, related_name="payload_iovs", null=True, db_index=False
    )
    extra = models.CharField(max_length=REVISION_LENGTH, null=True)  # noqa: DJ001 -- null and "" differ in the API
    # The version of the payload list since which the row is as it is now; see `cdb_rest.models.history`.
    added_in = models.IntegerField(db_default=0, default=0, editable=False)
    # The client that created the row, while it or its list is detached; and the global tag from whose list it was detached.
    creator = models.CharField(max_length=TEXT_LENGTH, null=True, editable=False)  # noqa: DJ001 -- null: unknown
    left_tag = models.CharField(max_length=NAME_LENGTH, null=True, editable=False)  # noqa: DJ001
    created = models.DateTimeField(db_default=Now(), editable=False)
    updated = models.DateTimeField(db_default=Now(), editable=False)
    # Computed by the database, because Python's default decimal context would round it.
    comb_iov = models.GeneratedField(
        expression=COMBINED_MOMENT,
        output_field=models.DecimalField(max_digits=38, decimal_places=19),
        db_persist=True,
    )

    class Meta:
        db_table = "PayloadIOV"
        constraints = [
            # The lookup's index. It also ensures that no two rows of a list have the same start.
            models.UniqueConstraint(
                F("payload_list"),
                F("comb_iov").desc(nulls_last=True),
                name="payload_iov_lookup",
                include=[
                    "payload_url",
                    "checksum",
                    "size",
                    "major_iov",
                    "minor_iov",
                    "major_iov_end",
                    "minor_iov_end",
                    "extra",
                    "added_in",
                ],
            ),
            models.CheckConstraint(
                name="payload_iov_not_negative",
                condition=Q(payload_list__isnull=True)
                | Q(major_iov__gte=0, minor_iov__gte=0, major_iov_end__gte=0, minor_iov_end__gte=0, size__gte=0),
            ),
            models.CheckConstraint(
                name="payload_iov_end_not_before_start",
                condition=Q(payload_list__isnull=True)
                | Q(major_iov_end__gt=F("major_iov"))
                | Q(major_iov_end=F("major_iov"), minor_iov_end__gte=F("minor_iov")),
            ),
            models.CheckConstraint(name="payload_iov_revision_is_digits", condition=Q(extra__regex=r"^[0-9]+$")),
        ]
        indexes = [uses_index("payload_iov_uses")]

    def __str__(self) -> str:
        return f"{self.payload_url} [{self.major_iov},{self.minor_iov} to {self.major_iov_end},{self.minor_iov_end}]"


class ListedPayloadIOV(models.Model):
    """A row of a payload list, also of one that shares the rows of another list: a view with the columns of `PayloadIOV`.

    A row that several lists share is in the view once for each of them.
    """

    payload_url = models.CharField(max_length=TEXT_LENGTH)
    checksum = models.CharField(max_length=TEXT_LENGTH)
    size = models.BigIntegerField()
    major_iov = models.BigIntegerField()
    minor_iov = models.BigIntegerField()
    major_iov_end = models.BigIntegerField()
    minor_iov_end = models.BigIntegerField()
    comb_iov = models.DecimalField(max_digits=38, decimal_places=19)
    extra = models.CharField(max_length=REVISION_LENGTH, null=True)  # noqa: DJ001 -- as in PayloadIOV
    payload_list = models.ForeignKey(PayloadList, on_delete=models.DO_NOTHING, related_name="listed_iovs")
    created = models.DateTimeField()
    updated = models.DateTimeField()

    class Meta:
        db_table = "ListedPayloadIOV"
        managed = False

    def __str__(self) -> str:
        return f"{self.payload_url} in payload list {self.payload_list_id}"


def payload_of(iov: PayloadIOV) -> dict[str, Any]:
    """The values of an IOV's payload columns, by column name."""
    return {column: getattr(iov, column) for column in PAYLOAD_COLUMNS.values()}


def has_payload(stored: PayloadIOV, given: PayloadIOV) -> bool:
    """Whether a stored IOV has the payload of another one, whose checksum, size and revision count only if they are not empty."""
    return all(
        getattr(stored, column) == value
        for column, value in payload_of(given).items()
        if column == "payload_url" or value not in ("", 0, None)
    )


def load_statement(name: str) -> str:
    """The statement with that name in ``sql/``, with its placeholders replaced: lists of payload columns, and `stored_iovs`.

    Raises `ValueError` for an unknown placeholder.
    """
    columns = PAYLOAD_COLUMNS.values()
    lists = {
        "{payload}": columns,
        "{iov.payload}": [f"iov.{column}" for column in columns],
        "{iov.payload_if_whole}": [f"CASE WHEN area.since IS NULL THEN iov.{column} END" for column in columns],
        "{payload_arrays}": [f"%({column})s::{_type_of(column)}[]" for column in columns],
    }
    text = named_sql.load(name)
    if "{stored_iovs}" in text:
        text = text.replace("{stored_iovs}", named_sql.load("stored_iovs"))
    for placeholder, parts in lists.items():
        text = text.replace(placeholder, ", ".join(parts))
    if left := PLACEHOLDER.search(text):
        raise ValueError(f"the statement {name} has an unknown placeholder {left[0]}")
    return text


def _type_of(column: str) -> str:
    field = cast("models.Field[Any, Any]", PayloadIOV._meta.get_field(column))
    return "text" if isinstance(field, models.CharField | models.TextField) else str(field.db_type(connection))
