"""Tokens of this service: invalid ones, their expiry and revocation, and their limits."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest import mark

from cdb_rest.access import api_tokens, attempts
from cdb_rest.models import AccessChange, AccessRule, ApiToken, GlobalTagChange, PayloadIOV
from cdb_rest.writes import access
from tests.api.access import ROW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed")]


@mark.parametrize(
    ("header", "detail"),
    [
        ("Bearer cdb_1234", "checksum"),
        ("Bearer cdb_0000000000000000000000000000000000002w5C1l", "checksum"),
        ("bearer x.y.z", "no issuer is configured"),
        ("Bearer " + "a" * 9000, "at most 8000 characters"),
        ("Bearer", "no issuer is configured"),
        ("Bearer \u00e9", "no issuer is configured"),
    ],
)
def test_an_invalid_token_is_refused(api, header, detail):
    answer = api.post("pt", {"name": "Gain"}, Authorization=header)
    assert detail in answer.error(401, "invalid_token")["detail"]
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="cdb", error="invalid_token"'


def test_a_token_expires(api, login):
    headers = login("contributor", lifetime=timedelta(seconds=60))
    api.post("pt", {"name": "Gain"}, **headers).ok()
    ApiToken.objects.update(expires=timezone.now())
    api_tokens.forget()
    assert "expired at" in api.post("pt", {"name": "Noise"}, **headers).error(401, "invalid_token")["detail"]


def test_a_token_is_revoked_within_seconds_and_its_name_is_never_used_again(api, login):
    headers = login("contributor", name="robot")
    api.post("pt", {"name": "Gain"}, **headers).ok()
    access.revoke_token(actor="test", name="robot")
    # What this process remembers expires.
    api_tokens.forget()
    assert "was revoked" in api.post("pt", {"name": "Noise"}, **headers).error(401, "invalid_token")["detail"]
    with pytest.raises(Exception, match="already exists"):
        login("contributor", name="robot")


def test_a_token_is_stored_as_a_digest_and_its_use_is_recorded(api, login):
    headers = login("contributor", name="robot")
    assert ApiToken.objects.get().last_used is None
    api.post("pt", {"name": "Gain"}, **headers).ok()
    token = ApiToken.objects.get()
    assert token.last_used is not None and len(token.digest) == 64
    secret = headers["Authorization"].removeprefix("Bearer ")
    assert secret not in str([list(model.objects.values()) for model in (ApiToken, AccessRule, AccessChange)])


def test_the_change_log_names_the_token(api, login, ids):
    api.put("gt_change_status/mine/locked", **login("manager", name="robot")).ok()
    assert GlobalTagChange.objects.latest("id").actor == "token:robot"


def test_idempotency_keys_belong_to_the_actor(api, ids, login):
    first, second = login("contributor"), login("contributor")
    body = [ROW | {"payload_list": "Gain mine"}]
    key = {"Idempotency-Key": "same"}
    api.post("bulk_piov", body, **first, **key).ok()
    api.post("bulk_piov", body, **first, **key).ok()
    api.post("bulk_piov", body, **second, **key).error(409, "iov_overlap")
    assert PayloadIOV.objects.filter(payload_url="file").count() == 1


def test_a_repeated_request_of_a_revoked_token_gets_no_response(api, ids, login):
    headers = login("contributor", name="robot") | {"Idempotency-Key": "key"}
    body = [ROW | {"payload_list": "Gain mine"}]
    api.post("bulk_piov", body, **headers).ok()
    access.revoke_token(actor="test", name="robot")
    api_tokens.forget()
    api.post("bulk_piov", body, **headers).error(401, "invalid_token")


def test_open_writes_ignore_a_token_that_is_not_valid(api, settings):
    settings.CDB_OPEN_WRITES = True
    api.post("pt", {"name": "Gain"}, Authorization="Bearer x").ok()


def test_many_invalid_tokens_are_refused_without_verification(api, login, monkeypatch):
    headers, used = login("contributor"), login("contributor")
    api.post("pt", {"name": "First"}, **used).ok()
    for _ in range(attempts.LIMIT):
        api.post("pt", {"name": "Gain"}, Authorization="Bearer cdb_x").error(401, "invalid_token")
    api.post("pt", {"name": "Gain"}, Authorization="Bearer cdb_x").error(429, "too_many_attempts")
    api.post("pt", {"name": "Gain"}, **headers).error(429, "too_many_attempts")
    # Requests without a token are not concerned, nor those with a token that was valid before.
    api.post("pt", {"name": "Gain"}).error(401, "authentication_required")
    api.post("pt", {"name": "Second"}, **used).ok()
    token = ApiToken.objects.order_by("-id").first()
    access.revoke_token(actor="test", name=token.name)
    api_tokens.forget()
    api.post("pt", {"name": "Gain"}, **used).error(401, "invalid_token")
    api.post("pt", {"name": "Gain"}, **used).error(429, "too_many_attempts")
    later = time.time() + attempts.PERIOD_SECONDS + 1
    monkeypatch.setattr("django.core.cache.backends.locmem.time.time", lambda: later)
    api.post("pt", {"name": "Third"}, **headers).ok()


def test_addresses_that_a_client_invents_do_not_evade_the_limit(api, settings):
    settings.CDB_BEHIND_PROXY = True
    for number in range(attempts.LIMIT):
        headers = {"X-Forwarded-For": f"192.0.2.{number}, 198.51.100.1", "Authorization": "Bearer cdb_x"}
        api.post("pt", {"name": "Gain"}, **headers).error(401, "invalid_token")
    api.post("pt", {"name": "Gain"}, **headers).error(429, "too_many_attempts")
