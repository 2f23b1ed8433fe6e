"""The transaction of a write: the errors after which it is retried, and those that it raises."""

import pytest
from django.db import ProgrammingError, connection

from cdb_rest.rules.errors import ConcurrentChangeError
from cdb_rest.writes.transactions import ATTEMPTS, write

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lost_race_is_played_again(build):
    calls = []

    @write
    def loses_twice():
        calls.append(1)
        if len(calls) < 3:
            raise ConcurrentChangeError("lost")
        return "won"

    assert loses_twice() == "won"

    @write
    def loses_always():
        calls.append(1)
        raise ConcurrentChangeError("lost")

    calls.clear()
    with pytest.raises(ConcurrentChangeError):
        loses_always()
    assert len(calls) == ATTEMPTS


def test_a_bug_in_a_write_keeps_its_cause(build):
    @write
    def asks_nonsense():
        with connection.cursor() as cursor:
            cursor.execute("SELECT nonsense")

    with pytest.raises(ProgrammingError) as caught:
        asks_nonsense()
    assert caught.value.__cause__ is not caught.value
