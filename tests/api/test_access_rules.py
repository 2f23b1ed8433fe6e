"""Access rules: which ones are valid, and when they take effect."""

import pytest
from pytest import mark, param

from cdb_rest.access import rules
from cdb_rest.models import AccessChange, AccessRule
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
