"""The keys of identity providers: their rotation and refreshment, and issuers that fail or hang."""

import json
import threading

import pytest
from pytest import mark

from cdb_rest.access import jwt_tokens, keys, memory
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_keys_are_rotated_while_the_service_runs(trusted, lock, monkeypatch):
    lock(trusted.token()).ok()
    trusted.private.clear()
    trusted.add_key("second")
    # Not asked again at once, so that forged key ids do not flood the issuer.
    lock(trusted.token("second")).error(401, "invalid_token")
    assert len(trusted.requests) == 2
    monkeypatch.setattr(keys, "RETRY_SECONDS", 0)
    lock(trusted.token("second")).ok()
    assert trusted.requests[2:] == ["/jwks"]


def test_forged_key_ids_do_not_flood_the_issuer(trusted, lock, monkeypatch):
    monkeypatch.setattr(memory, "LIMIT", 1000)
    lock(trusted.token()).ok()
    for number in range(50):
        lock(trusted.token(headers={"kid": f"forged {number}"})).error(401, "invalid_token")
    assert len(trusted.requests) == 2


def test_keys_are_used_while_the_issuer_is_away_even_after_a_restart(trusted, lock, monkeypatch):
    lock(trusted.token()).ok()
    trusted.answer = lambda path: (500, b"")
    keys.forget()
    jwt_tokens.forget()
    lock(trusted.token()).ok()
    # Two days later.
    monkeypatch.setattr(keys, "MAX_AGE_SECONDS", 0)
    jwt_tokens.forget()
    lock(trusted.token(jti="later")).error(401, "invalid_token")


@mark.parametrize(
    "document", [{"issuer": "https://evil.example.org", "jwks_uri": "x"}, {}, [], {"jwks_uri": "file:///etc/passwd"}]
)
def test_a_discovery_document_of_another_issuer_is_refused(trusted, lock, document):
    document = document | {"issuer": trusted.url} if document == {"jwks_uri": "file:///etc/passwd"} else document
    trusted.answer = lambda path: (200, json.dumps(document).encode())
    lock(trusted.token()).error(401, "invalid_token")


def test_no_request_waits_long_for_an_issuer_that_hangs(trusted, lock):
    refused, was_in_time = threading.Event(), []

    def respond(path):
        was_in_time.append(refused.wait(60))
        return 500, b""

    trusted.answer = respond
    lock(trusted.token()).error(401, "invalid_token")
    # Another attempt would wait again.
    lock(trusted.token(jti="2")).error(401, "invalid_token")
    refused.set()
    eventually(lambda: was_in_time, [True])
