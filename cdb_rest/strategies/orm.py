"""The lookup by Django's ORM, in the two forms that were published: for comparison, and as a second opinion in tests."""

from collections.abc import Iterable
from itertools import starmap
from typing import Any

from django.db.models import F, Max, QuerySet

from cdb_rest.domain.errors import GlobalTagNotFoundError
from cdb_rest.lookup.question import Question, Row
from cdb_rest.models import GlobalTag, PayloadIOV

PATHS = (
    "payload_list__payload_type__name",
    "payload_url",
    "checksum",
    "size",
    "major_iov",
    "minor_iov",
    "major_iov_end",
    "minor_iov_end",
    "extra",
)


def order_by(question: Question) -> list[Row]:
    """Sort each list's candidates by start, latest first, and keep the first of each list (DISTINCT ON).

    Raises `GlobalTagNotFoundError`.
    """
    latest = _candidates(question).order_by("payload_list", F("comb_iov").desc()).distinct("payload_list")
    return _rows(question, latest.values_list(*PATHS))


def maximum(question: Question) -> list[Row]:
    """Find the latest start of each list by GROUP BY, then the rows that have it.

    Raises `GlobalTagNotFoundError`.
    """
    candidates = _candidates(question)
    starts = dict(candidates.values_list("payload_list").annotate(Max("comb_iov")))
    rows = candidates.filter(payload_list__in=starts, comb_iov__in=set(starts.values()))
    latest = (
        columns
        for list_id, start, *columns in rows.values_list("payload_list", "comb_iov", *PATHS)
        if starts[list_id] == start
    )
    return _rows(question, latest)


def _candidates(question: Question) -> QuerySet[PayloadIOV]:
    tag = GlobalTag.objects.filter(name=question.tag).first()
    if tag is None:
        raise GlobalTagNotFoundError(question.tag)
    return PayloadIOV.objects.filter(payload_list__global_tag=tag, comb_iov__lte=question.moment.combined)


def _rows(question: Question, found: Iterable[Iterable[Any]]) -> list[Row]:
    return sorted(row for row in starmap(Row, found) if question.wants(row))
