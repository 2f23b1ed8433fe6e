"""Clients that are identified by a token of this service, their network, a proxy, or a session."""

import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pytest import mark

from cdb_rest.access import api_tokens, issuers, memory
from cdb_rest.models import AccessChange, AccessRule, ApiToken, GlobalTagChange
from cdb_rest.writes import access
from tests.api.helpers import INSERTION, MINE, OTHER, PATTERN, grant
from tests.conftest import ServiceClient

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


def test_a_request_without_a_token_is_told_what_it_has_instead(api, settings):
    for sent, detail in (
        (None, "no header"),
        ("Token cdb_1234", "'Token'"),
        ("cdb_1234", "no scheme"),
        ("eyJh.eyJp.c2ln x", "no scheme"),
    ):
        headers = {"Authorization": sent} if sent else {}
        settings.CDB_ANONYMOUS_READS = True
        writing = api.post("pt", {"name": "Gain"}, **headers).error(401, "authentication_required")["detail"]
        settings.CDB_ANONYMOUS_READS = False
        reading = api.get("pt", **headers).error(401, "authentication_required")["detail"]
        # The token itself is not repeated.
        assert all(detail in one and "1234" not in one and "eyJh" not in one for one in (writing, reading))


def test_a_token_is_used_until_it_expires_or_is_revoked(api, login):
    headers = login("contributor", lifetime=timedelta(seconds=60), name="robot")
    assert ApiToken.objects.get().last_used is None
    api.post("pt", {"name": "Gain"}, **headers).ok()
    token = ApiToken.objects.get()
    assert token.last_used is not None and len(token.digest) == 64
    secret = headers["Authorization"].removeprefix("Bearer ")
    assert secret not in str([list(model.objects.values()) for model in (ApiToken, AccessRule, AccessChange)])
    ApiToken.objects.update(expires=timezone.now())
    # What this process remembers expires.
    api_tokens.forget()
    assert "expired at" in api.post("pt", {"name": "Noise"}, **headers).error(401, "invalid_token")["detail"]
    access.revoke_token(actor="test", name="robot")
    api_tokens.forget()
    assert "was revoked" in api.post("pt", {"name": "Noise"}, **headers).error(401, "invalid_token")["detail"]
    # Its name is never used again.
    with pytest.raises(Exception, match="already exists"):
        login("contributor", name="robot")


def test_open_writes_ignore_a_token_that_is_not_valid(api, settings):
    settings.CDB_OPEN_WRITES = True
    api.post("pt", {"name": "Gain"}, Authorization="Bearer x").ok()


def test_many_invalid_tokens_are_refused_without_verification(api, login, monkeypatch):
    headers, used = login("contributor"), login("contributor")
    api.post("pt", {"name": "First"}, **used).ok()
    for _ in range(memory.LIMIT):
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
    later = time.time() + memory.PERIOD_SECONDS + 1
    monkeypatch.setattr("django.core.cache.backends.locmem.time.time", lambda: later)
    api.post("pt", {"name": "Third"}, **headers).ok()


def test_addresses_that_a_client_invents_do_not_evade_the_limit(api, settings):
    settings.CDB_BEHIND_PROXY = True
    for number in range(memory.LIMIT):
        headers = {"X-Forwarded-For": f"192.0.2.{number}, 198.51.100.1", "Authorization": "Bearer cdb_x"}
        api.post("pt", {"name": "Gain"}, **headers).error(401, "invalid_token")
    api.post("pt", {"name": "Gain"}, **headers).error(429, "too_many_attempts")


def test_clients_in_a_network_need_no_token(api, ids):
    grant(kind="network", subject="127.0.0.0/8", identity="counting-house", role="contributor", tags=PATTERN)
    grant(kind="network", subject="10.0.0.0/8", identity="elsewhere", role="manager")
    insert = INSERTION | {"global_tag": MINE}
    api.post("payload-iovs/insert", insert).ok()
    assert GlobalTagChange.objects.latest("id").actor == "network:counting-house (127.0.0.1)"
    api.post("payload-iovs/insert", INSERTION | {"global_tag": OTHER}).error(403, "not_permitted")
    api.put("gt_change_status/mine/locked").error(403, "not_permitted")


def test_an_address_that_a_client_sends_is_not_trusted(api, ids, settings):
    grant(kind="network", subject="10.0.0.0/8", identity="counting-house", role="manager")
    request = ("PUT", "gt_change_status/mine/locked")
    headers = {"X-Forwarded-For": "10.1.2.3", "X-Forwarded-User": "alice"}
    grant(kind="user", subject="alice", role="manager")
    api(*request, **headers).error(401, "authentication_required")
    settings.CDB_BEHIND_PROXY = True
    # A list may begin with what the client sent.
    api(*request, **{"X-Forwarded-For": "10.1.2.3, 192.168.1.1"}).error(401, "authentication_required")
    api(*request, **{"X-Forwarded-For": "::ffff:10.1.2.3"}).ok()


def test_a_token_that_is_invalid_is_not_replaced_by_the_network(api, ids):
    grant(kind="network", subject="127.0.0.0/8", identity="counting-house", role="manager")
    api.put("gt_change_status/mine/locked", Authorization="Bearer x").error(401, "invalid_token")


def test_a_user_of_a_proxy_has_the_rules_of_that_name(api, ids, settings):
    settings.CDB_BEHIND_PROXY = True
    grant(kind="user", subject="alice", role="manager", tags=PATTERN)
    api.put("gt_change_status/mine/locked", **{"X-Forwarded-User": "bob"}).error(403, "not_permitted")
    api.put("gt_change_status/mine/locked", **{"X-Forwarded-User": "alice"}).ok()
    assert GlobalTagChange.objects.latest("id").actor == "alice"
    # It cannot have the name of a token.
    assert api.get("whoami", **{"X-Forwarded-User": "token:robot"}).ok()["method"] == ""


def test_a_session_needs_a_csrf_token(ids):
    user = User.objects.create_user("alice")
    user.groups.add(Group.objects.create(name="experts"))
    grant(kind="group", subject="experts", role="manager")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    path = "/api/cdb_rest/gt_change_status/mine/locked"
    refused = client.put(path)
    assert refused.status_code == 403 and "X-CSRFToken" in refused.json()["detail"]
    token = "a" * 32
    client.cookies["csrftoken"] = token
    assert client.put(path, headers={"X-CSRFToken": "b" * 32}).status_code == 403
    assert client.put(path, headers={"X-CSRFToken": token}).status_code == 200
    assert GlobalTagChange.objects.latest("id").actor == "alice"


def test_a_session_that_sends_a_form_gets_415(ids):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("root"))
    client.cookies["csrftoken"] = "a" * 32
    # Without a token in a header, Django looks for it in the form.
    response = client.generic("POST", "/api/cdb_rest/pt", b"x", content_type="multipart/form-data")
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


def test_claims_of_a_session_count_only_for_their_issuer(ids, settings, tmp_path):
    grant(kind="claim", issuer="exp", claim="groups", subject="experts", role="manager")
    client = Client()
    client.force_login(User.objects.create_user("exp:alice"))
    session = client.session
    session["oidc_claims"] = {"iss": "https://exp.example.org", "sub": "alice", "groups": ["experts"]}
    session.save()
    (tmp_path / "secret").write_text("secret")

    def lock(issuer, subject="sub"):
        (tmp_path / "issuers.toml").write_text(
            f'[exp]\nissuer = "{issuer}"\naudience = "cdb"\nalgorithms = ["RS256"]\nsubject = "{subject}"\n'
            f'client_id = "cdb"\nclient_secret_file = "secret"\nkeys_url = "https://exp.example.org/keys"\n'
        )
        settings.CDB_ISSUERS_FILE = str(tmp_path / "issuers.toml")
        issuers.configured.cache_clear()
        return client.put("/api/cdb_rest/gt_change_status/mine/locked").status_code

    try:
        assert lock("https://other.example.org") == 403
        assert lock("https://exp.example.org", subject="preferred_username") == 403
        assert lock("https://exp.example.org") == 200
    finally:
        issuers.configured.cache_clear()


def test_a_deactivated_account_with_a_session_is_unknown(ids, settings):
    backend = "cdb_rest.access.login.OIDCBackend"
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, backend]
    user = User.objects.create_user("exp:alice", is_staff=True)
    grant(kind="user", subject="exp:alice", role="manager")
    client = ServiceClient()
    client.force_login(user, backend)
    client.cookies["csrftoken"] = "a" * 32
    lock, read, admin = "/api/cdb_rest/gt_change_status/mine/locked", "/api/cdb_rest/gt", "/admin/"
    settings.CDB_ANONYMOUS_READS = False

    def statuses():
        return [client.put(lock).status_code, client.get(read).status_code, client.get(admin).status_code]

    assert statuses() == [200, 200, 200]
    User.objects.update(is_active=False)
    assert statuses() == [401, 401, 302]
    # The admin has ended the session.
    User.objects.update(is_active=True)
    assert statuses()[0] == 401
