"""Access rules: which ones are valid, when they take effect, and how they and tokens are shown and changed in the admin."""

import time

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest import mark, param

from cdb_rest.access import memory, rules
from cdb_rest.models import AccessChange, AccessRule, ApiToken
from cdb_rest.writes import access
from tests.api.helpers import PATTERN, grant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed")]


def test_rules_are_recorded_and_take_effect_when_they_change(api, ids, login):
    headers = login("reader", name="robot")
    api.put("gt_change_status/mine/locked", **headers).error(403)
    rule = grant(kind="token", subject="robot", role="manager")
    api.put("gt_change_status/mine/locked", **headers).ok()
    access.revoke(actor="test", rule_id=rule.id)
    rules.forget()
    api.put("gt_change_status/mine/unlocked", **headers).error(403)
    assert [change.action for change in AccessChange.objects.order_by("id")] == [
        "grant",
        "create_token",
        "grant",
        "revoke",
    ]
    assert AccessChange.objects.latest("id").detail["subject"] == "robot"


@mark.parametrize(
    ("values", "field"),
    [
        (param({"kind": "wizard"}, "kind")),
        (param({"role": "king"}, "role")),
        (param({"subject": "("}, "subject")),
        (param({"tags": "[a"}, "tags")),
        (param({"types": "(?=a)"}, "types")),
        (param({"tags": "{value}"}, "tags")),
        (param({"role": "reader", "tags": "a"}, "tags")),
        (param({"issuer": "x"}, "issuer")),
        (param({"tags": ""}, "tags")),
        (param({"kind": "network", "subject": "10.0.0.0/8", "identity": "a\nb"}, "identity")),
        (param({"subject": ""}, "subject")),
        (param({"types": "a" * 256}, "types")),
        (param({"comment": "a" * 1001}, "comment")),
        (param({"identity": "x"}, "identity")),
        (param({"kind": "claim", "issuer": "x"}, "claim")),
        (param({"kind": "network", "subject": "10.0.0.0/8"}, "identity")),
        (param({"kind": "network", "subject": "10.0.0.1/8", "identity": "x"}, "subject")),
        (param({"kind": "network", "subject": "10.0.0.0/8", "identity": "x", "role": "administrator"}, "role")),
    ],
)
def test_a_rule_that_is_not_valid_is_refused(values, field):
    with pytest.raises(access.InvalidInputError) as refusal:
        grant(**{"kind": "user", "subject": "alice", "role": "manager"} | values)
    assert list(refusal.value.fields) == [field]
    assert not AccessRule.objects.exists()


def test_whoami_explains_a_decision(api, login):
    anonymous = api.get("whoami?role=manager&global_tag=mine").ok()
    assert anonymous["method"] == "" and anonymous["permissions"] == []
    assert anonymous["decision"] == {
        "is_permitted": False,
        "rule": None,
        "needs": "the role manager for global tag mine and all payload types",
    }
    mine = api.get("whoami?role=contributor&global_tag=mine&payload_type=Gain", **login("manager", PATTERN)).ok()
    assert mine["decision"]["is_permitted"] and mine["decision"]["rule"] == mine["permissions"][0]["rule"]
    assert api.get("whoami", Authorization="Bearer x").error(401, "invalid_token")
    api.get("whoami?role=king").error(400, "invalid_input")


class TestAdmin:
    """Rules and tokens in the admin."""

    @pytest.fixture
    def client(self):
        client = Client()
        client.force_login(User.objects.create_superuser("root"))
        return client

    RULE = {"kind": "user", "subject": "alice", "role": "manager", "tags": ".*", "types": ".*"}

    def test_many_wrong_passwords_are_refused_and_so_is_the_right_one_then(self, monkeypatch, settings):
        # The usual hash of a password takes a third of a second.
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
        User.objects.create_superuser("other", password="the right one")
        client = Client()

        def log_in(password):
            form = {"username": "other", "password": password}
            return client.post("/admin/login/?next=/admin/", form).status_code

        for _ in range(memory.LIMIT):
            assert log_in("wrong") == 200
        assert log_in("the right one") == 200
        later = time.time() + memory.PERIOD_SECONDS + 1
        monkeypatch.setattr("django.core.cache.backends.locmem.time.time", lambda: later)
        assert log_in("the right one") == 302

    def test_a_rule_is_added_changed_and_deleted_and_each_change_is_recorded(self, client):
        assert client.post("/admin/cdb_rest/accessrule/add/", self.RULE).status_code == 302
        rule = AccessRule.objects.get()
        page = f"/admin/cdb_rest/accessrule/{rule.id}"
        assert client.post(f"{page}/change/", self.RULE | {"tags": "a.*"}).status_code == 302
        assert client.post(f"{page}/delete/", {"post": "yes"}).status_code == 302
        assert [(change.actor, change.action) for change in AccessChange.objects.order_by("id")] == [
            ("root", "grant"),
            ("root", "change"),
            ("root", "revoke"),
        ]
        change = AccessChange.objects.get(action="change").detail
        assert (change["before"]["tags"], change["tags"]) == (".*", "a.*")

    def test_a_rule_that_is_not_valid_is_refused_with_the_name_of_the_field(self, client):
        answer = client.post("/admin/cdb_rest/accessrule/add/", self.RULE | {"tags": "("})
        assert answer.status_code == 200 and "tags must be a regular expression" in answer.content.decode()
        assert not AccessRule.objects.exists()

    def test_a_token_is_shown_without_its_digest_and_can_be_revoked(self, client, login):
        login("contributor", name="robot")
        token = ApiToken.objects.get()
        page = client.get(f"/admin/cdb_rest/apitoken/{token.id}/change/").content.decode()
        assert "robot" in page and token.digest not in page
        chosen = {"action": "revoke_tokens", "_selected_action": token.id}
        assert client.post("/admin/cdb_rest/apitoken/", chosen).status_code == 302
        assert ApiToken.objects.get().revoked is not None
        assert client.get("/admin/cdb_rest/apitoken/add/").status_code == 403
        assert client.get("/admin/cdb_rest/accesschange/").status_code == 200
