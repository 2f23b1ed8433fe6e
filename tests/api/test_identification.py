"""Clients that are identified without a token: by their network, a proxy, or a session."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from cdb_rest.access import issuers
from cdb_rest.models import GlobalTagChange
from tests.api.access import INSERTION, MINE, OTHER, PATTERN, grant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed")]


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
