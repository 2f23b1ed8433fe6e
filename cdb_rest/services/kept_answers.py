"""Answering a request that comes again with the first answer, instead of doing it twice."""

from collections.abc import Callable

from django.conf import settings
from django.db import connection

from cdb_rest import named_sql
from cdb_rest.domain.errors import ConcurrentChangeError, KeyReusedError
from cdb_rest.services.transactions import write

CLAIM = named_sql.load("claim_key")
FIND = named_sql.load("find_kept_answer")
KEEP = named_sql.load("keep_answer")
FORGET = named_sql.load("forget_kept_answers")


@write
def answer_once(*, key: str, request_digest: str, make: Callable[[], str]) -> str:
    """The answer that is kept for `key`, or what `make` answers, which is kept from now on.

    What `make` writes is part of the same transaction, so that it is stored exactly if the answer is kept; what it raises
    is not kept. A request that is still at work with the same key is waited for. Raises `KeyReusedError` if the key was
    used with another request.
    """
    with connection.cursor() as cursor:
        cursor.execute(FORGET, {"key": key, "hours": settings.CDB_IDEMPOTENCY_HOURS})
        cursor.execute(CLAIM, {"key": key, "request_digest": request_digest})
        if not cursor.rowcount:
            cursor.execute(FIND, {"key": key})
            kept = cursor.fetchone()
            if kept is None:
                raise ConcurrentChangeError(f"The answer for the idempotency key {key} was just forgotten; try again.")
            known_digest: str
            answer: str
            known_digest, answer = kept
            if known_digest != request_digest:
                raise KeyReusedError(f"The idempotency key {key} was used with another request; use a new one.")
            return answer
    answer = make()
    with connection.cursor() as cursor:
        cursor.execute(KEEP, {"key": key, "answer": answer})
    return answer
