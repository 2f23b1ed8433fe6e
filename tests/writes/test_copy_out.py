"""A server that stops responding in the middle of a copy."""

import time

import pytest
from django.db import OperationalError, connection

from cdb_rest.exports import copy_out

pytestmark = pytest.mark.django_db(transaction=True)


# After it the server notices that the client is gone.
SLEEP = "COPY (SELECT pg_sleep(3)) TO STDOUT"


def test_a_server_that_falls_silent_is_given_up_and_the_next_statement_has_a_new_connection(monkeypatch):
    monkeypatch.setattr(copy_out, "SILENCE_SECONDS", 0.5)
    connection.ensure_connection()
    begin = time.monotonic()
    with pytest.raises(OperationalError, match="sent nothing"), copy_out.stream_copy(SLEEP, {}) as pieces:
        list(pieces)
    assert time.monotonic() - begin < 2.5
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
    time.sleep(3)
