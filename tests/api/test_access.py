"""Who may do what: each write, with each role, for tags and payload types inside and outside of the pattern of a rule."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pytest import mark, param

from cdb_rest.api.urls import view_of
from cdb_rest.domain.access import Role
from cdb_rest.http.security import SAFE_METHODS
from cdb_rest.identity import api_tokens, attempts, issuers, rules
from cdb_rest.models import AccessChange, AccessRule, ApiToken, GlobalTag, GlobalTagChange, PayloadIOV, PayloadType
from cdb_rest.routes import ROUTES
from cdb_rest.services import access, global_tags

pytestmark = pytest.mark.django_db(transaction=True)

MINE, OTHER = "mine", "other"
PATTERN = "mine.*"
ROW = {"payload_url": "file", "checksum": "c", "major_iov": 5, "minor_iov": 0, "major_iov_end": 6, "minor_iov_end": 0}
INSERTION = {"payload_type": "Gain", "payload_url": "file", "checksum": "c", "since": [5, 0], "until": [6, 0]}


@pytest.fixture(autouse=True)
def closed(settings):
    settings.CDB_OPEN_WRITES = False


@pytest.fixture
def login():
    """Creates a token with a role, and returns the headers of a request with it."""

    def create(role, tags=".*", types=".*", lifetime=None, name=None):
        name = name or f"robot {ApiToken.objects.count()}"
        token, _ = access.create_token(
            actor="test", name=name, role=str(role), tags=tags, types=types, lifetime=lifetime
        )
        rules.forget()
        return {"Authorization": f"Bearer {token}"}

    return create


@pytest.fixture
def ids(build):
    """Two tags with an IOV, a further tag, a locked one, and detached lists. Returns the ids of the IOVs."""
    ids = {"detached": build.iov(None, (7, 0), (8, 0)).id}
    for name in (MINE, OTHER, "mine too"):
        tag = build.tag(name)
        ids[name] = build.iov(rename(build.list(tag, "Gain"), f"Gain {name}"), (1, 0), (2, 0)).id
        rename(build.list(tag, "Noise"), f"Noise {name}")
        rename(build.list(build.tag(f"{name} locked", "locked"), "Gain"), f"Gain {name} locked")
    for name in (MINE, OTHER):
        # So that there is a revision to revert to.
        for status in ("locked", "unlocked"):
            global_tags.change_status(name=name, status=status)
    build.tag("source")
    rename(build.list(None, "Gain"), "Gain detached")
    rename(build.list(None, "New"), "New detached")
    PayloadType.objects.create(name="Unused")
    return ids


def rename(payload_list, name):
    payload_list.name = name
    payload_list.save()
    return payload_list


# The role that a write to a tag needs, and the write: method, path and body for the name of the tag and the ids of IOVs.
WRITES = {
    "create": (Role.MANAGER, lambda tag, ids: ("POST", "gt", {"name": f"{tag} new", "status": "unlocked"})),
    "create by alias": (
        Role.MANAGER,
        lambda tag, ids: ("POST", "global-tags", {"name": f"{tag} new", "status": "locked"}),
    ),
    "create frozen": (Role.PUBLISHER, lambda tag, ids: ("POST", "gt", {"name": f"{tag} new", "status": "frozen"})),
    "clone": (Role.MANAGER, lambda tag, ids: ("POST", f"cloneGlobalTag/source/{tag} new", None)),
    "lock": (Role.MANAGER, lambda tag, ids: ("PUT", f"gt_change_status/{tag}/locked", None)),
    "freeze": (Role.PUBLISHER, lambda tag, ids: ("PUT", f"gt_change_status/{tag}/frozen", None)),
    "delete": (Role.MANAGER, lambda tag, ids: ("DELETE", f"deleteGlobalTag/{tag}", None)),
    "revert": (Role.MANAGER, lambda tag, ids: ("POST", f"global-tags/{tag}/revert", {"revision": 1})),
    "attach a list": (
        Role.CONTRIBUTOR,
        lambda tag, ids: ("PUT", "pl_attach", {"global_tag": tag, "payload_list": "New detached"}),
    ),
    "attach a list to a locked tag": (
        Role.MANAGER,
        lambda tag, ids: ("PUT", "pl_attach", {"global_tag": f"{tag} locked", "payload_list": "New detached"}),
    ),
    "replace a list": (
        Role.MANAGER,
        lambda tag, ids: ("PUT", "pl_attach", {"global_tag": tag, "payload_list": "Gain detached"}),
    ),
    "move a list to another tag": (
        Role.MANAGER,
        lambda tag, ids: ("PUT", "pl_attach", {"global_tag": "mine too", "payload_list": f"Noise {tag}"}),
    ),
    "delete a list": (Role.MANAGER, lambda tag, ids: ("DELETE", f"deletePayloadList/Noise {tag}", None)),
    "attach an IOV": (
        Role.CONTRIBUTOR,
        lambda tag, ids: ("PUT", "piov_attach", {"payload_list": f"Gain {tag}", "piov_id": ids["detached"]}),
    ),
    "move an IOV to another tag": (
        Role.MANAGER,
        lambda tag, ids: ("PUT", "piov_attach", {"payload_list": "Gain mine too", "piov_id": ids[tag]}),
    ),
    "delete an IOV": (Role.MANAGER, lambda tag, ids: ("DELETE", f"deletePayloadIOV/{tag}/Gain/1/0/2/0", None)),
    "insert in bulk": (
        Role.CONTRIBUTOR,
        lambda tag, ids: ("POST", "bulk_piov", [ROW | {"payload_list": f"Gain {tag}"}]),
    ),
    "insert in bulk into a locked tag": (
        Role.MANAGER,
        lambda tag, ids: ("POST", "bulk_piov", [ROW | {"payload_list": f"Gain {tag} locked"}]),
    ),
    "insert": (Role.CONTRIBUTOR, lambda tag, ids: ("POST", "payload-iovs/insert", INSERTION | {"global_tag": tag})),
    "plan an insertion": (
        Role.CONTRIBUTOR,
        lambda tag, ids: ("POST", "payload-iovs/insert", INSERTION | {"global_tag": tag, "dry_run": True}),
    ),
}
# The same for writes that concern no tag, or all.
OTHER_WRITES = {
    "create a type": (Role.CONTRIBUTOR, ("POST", "pt", {"name": "Gain 9"})),
    "delete a type": (Role.MANAGER, ("DELETE", "deletePayloadType/Unused", None)),
    "create a list": (Role.CONTRIBUTOR, ("POST", "pl", {"payload_type": "Unused"})),
    "create an IOV": (Role.CONTRIBUTOR, ("POST", "piov", ROW)),
    "create a status": (Role.MANAGER, ("POST", "gtstatus", {"name": "reviewed"})),
}


@mark.parametrize("write", WRITES)
def test_a_write_to_a_tag_needs_the_role_for_that_tag(api, ids, login, write):
    needed, request = WRITES[write]
    mine, other = request(MINE, ids), request(OTHER, ids)
    changes = GlobalTagChange.objects.count()
    error = api(*mine).error(401, "authentication_required")
    assert "Ask an administrator of this service." in error["detail"]
    for role in Role:
        # A reader reads everything.
        headers = login(role, ".*" if role == Role.READER else PATTERN)
        if role < needed:
            # The first check, before the body is read, needs the least role of the route.
            assert "needs the role " in api(*mine, **headers).error(403, "not_permitted")["detail"]
        detail = api(*other, **headers).error(403, "not_permitted")["detail"]
        assert f"global tag {OTHER}" in detail or role < needed
    assert GlobalTagChange.objects.count() == changes
    api(*mine, **login(needed, PATTERN)).ok()


@mark.parametrize("write", OTHER_WRITES)
def test_a_write_without_a_tag_needs_the_role(api, ids, login, write):
    needed, request = OTHER_WRITES[write]
    api(*request).error(401, "authentication_required")
    for role in Role:
        if role < needed:
            api(*request, **login(role)).error(403, "not_permitted")
    api(*request, **login(needed)).ok()


def test_every_view_that_writes_declares_a_role():
    for route in ROUTES:
        writes = [name for name in view_of(route).http_method_names if name.upper() not in SAFE_METHODS]
        has_writes = any(hasattr(view_of(route), name) for name in writes)
        assert has_writes == (route.writes is not None), route


def test_every_route_that_writes_has_a_test():
    paths = [request(MINE, {MINE: 1, "detached": 1})[1] for _, request in WRITES.values()]
    paths += [request[1] for _, request in OTHER_WRITES.values()]
    tested = {path.split("/")[0] if path != "payload-iovs/insert" else path for path in paths}
    for route in ROUTES:
        if route.writes is not None:
            assert {route.paths[0].split("/")[0], route.paths[0]} & tested, route.paths


@mark.parametrize("write", ["lock", "create", "clone", "revert", "delete"])
def test_a_manager_of_some_payload_types_cannot_change_a_whole_tag(api, ids, login, write):
    _, request = WRITES[write]
    detail = api(*request(MINE, ids), **login("manager", types="Gain")).error(403, "not_permitted")["detail"]
    assert "all payload types" in detail


@mark.parametrize(
    "write",
    ["attach a list", "insert", "insert in bulk", "attach an IOV", "move an IOV to another tag", "delete an IOV"],
)
def test_the_payload_type_must_match(api, ids, login, write):
    role, request = WRITES[write]
    headers = login(role, types="Noise")
    assert "for global tag mine and payload type" in api(*request(MINE, ids), **headers).error(403)["detail"]


@mark.parametrize(
    ("request_", "types"),
    [
        (("POST", "pt", {"name": "Gain 9"}), "Noise.*"),
        (("DELETE", "deletePayloadType/Unused", None), "Noise"),
        (("POST", "pl", {"payload_type": "Unused"}), "Noise"),
    ],
)
def test_the_payload_type_must_match_without_a_tag(api, ids, login, request_, types):
    api(*request_, **login("manager", types=types)).error(403, "not_permitted")


def test_a_status_is_for_all_tags(api, ids, login):
    api.post("gtstatus", {"name": "mine"}, **login("manager", PATTERN)).error(403, "not_permitted")


def test_only_the_rows_without_permission_are_refused(api, ids, login):
    rows = [INSERTION | {"global_tag": name} for name in (MINE, OTHER)]
    error = api.post("payload-iovs/insert", rows, **login("contributor", PATTERN)).error(403, "not_permitted")
    assert [row["row"] for row in error["rows"]] == [1]
    assert PayloadIOV.objects.filter(payload_url="file").count() == 0


@mark.parametrize(
    "name",
    [
        "MINE", "Mine", " mine", "amine", "mine\u0301", "\uff4dine", "m\u0131ne", "mine\u200b", "mine\u0661", "mine\n",
    ],
)  # fmt: skip
def test_no_spelling_of_a_name_leaves_the_pattern(api, login, name):
    # The pattern is for "mine" and digits alone: case, other alphabets and combining characters make another name.
    answer = api.post("gt", {"name": name, "status": "unlocked"}, **login("manager", r"mine\d*"))
    assert answer.status in (400, 403)
    assert not GlobalTag.objects.exists()


def test_a_decomposed_name_is_another_name(api, login):
    headers = login("manager", "é")
    api.post("gt", {"name": "e\u0301", "status": "unlocked"}, **headers).error(403, "not_permitted")
    api.post("gt", {"name": "\u00e9", "status": "unlocked"}, **headers).ok()


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


def test_without_a_token_the_challenge_names_no_error(api):
    answer = api.post("pt", {"name": "Gain"})
    answer.error(401, "authentication_required")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="cdb"'


def test_a_basic_header_for_a_proxy_counts_as_none(api):
    api.post("pt", {"name": "Gain"}, Authorization="Basic dXNlcjpwYXNz").error(401, "authentication_required")


def test_an_unknown_token_with_a_right_checksum_is_refused(api):
    from cdb_rest.domain.api_token import new_token

    headers = {"Authorization": f"Bearer {new_token()}"}
    assert "unknown" in api.post("pt", {"name": "Gain"}, **headers).error(401, "invalid_token")["detail"]


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


def test_a_write_that_changes_nothing_needs_the_role_as_well(api, login, ids):
    headers = login("contributor", PATTERN)
    attach_list = {"global_tag": OTHER, "payload_list": "Gain other"}
    attach_iov = {"payload_list": "Gain other", "piov_id": ids[OTHER]}
    api.put("pl_attach", attach_list, **headers).error(403, "not_permitted")
    api.put("piov_attach", attach_iov, **headers).error(403, "not_permitted")
    api.put("pl_attach", {"global_tag": MINE, "payload_list": "Gain mine"}, **headers).ok()


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


def test_a_superuser_is_an_administrator(ids):
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    assert client.put("/api/cdb_rest/gt_change_status/mine/frozen").status_code == 200


@mark.parametrize("cookie", ["sessionid=unknown", "sessionid=", "x=sessionid", 'sessionid="\\', "sessionid=../../etc"])
def test_an_unknown_session_counts_as_none(api, ids, cookie):
    api.put("gt_change_status/mine/locked", Cookie=cookie).error(401, "authentication_required")


def test_rules_are_recorded_and_take_effect_when_they_change(api, ids, login):
    headers = login("reader", name="robot")
    api.put("gt_change_status/mine/locked", **headers).error(403)
    rule = grant(kind="token", subject="robot", role="manager")
    api.put("gt_change_status/mine/locked", **headers).ok()
    access.revoke(actor="test", rule_id=rule.id)
    rules.forget()
    api.put("gt_change_status/mine/unlocked", **headers).error(403)
    assert [change.action for change in AccessChange.objects.order_by("id")] == [
        "grant", "create_token", "grant", "revoke"
    ]  # fmt: skip
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


@mark.parametrize("name", ["", " ", "a\nb", "a\0", "a" * 81])
def test_a_token_needs_a_name_for_logs(login, name):
    with pytest.raises(access.InvalidInputError, match="name must"):
        access.create_token(actor="test", name=name, role="manager", tags=".*", types=".*", lifetime=None)
    assert not ApiToken.objects.exists()


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


@mark.parametrize(
    "path",
    [
        "globalTags", "gt", "gt/1", "globalTag/mine", "globalTag/mine?light", "gtPayloadLists/mine", "gtstatus", "pt", "pl",
        "piov", "payload-iovs/1", "payloadiovs/?gtName=mine&majorIOV=1&minorIOV=0", "user_settings/CDB_IOV_MODE",
        "global-tags/mine/changes", "global-tags/mine/export",
    ],
)  # fmt: skip
def test_reads_can_be_closed(api, ids, login, settings, path):
    settings.CDB_ANONYMOUS_READS = False
    path = path.replace("gt/1", f"gt/{GlobalTag.objects.first().id}").replace("iovs/1", f"iovs/{ids[MINE]}")
    api.get(path).error(401, "authentication_required")
    assert api.get(path, **login("reader")).status == 200
    assert api.get(path, **login("contributor", PATTERN)).status == 200


def test_open_reads_do_not_look_at_tokens(api, ids, django_assert_num_queries):
    api.get("payloadiovs/?gtName=mine&majorIOV=1&minorIOV=0").ok()
    with django_assert_num_queries(1):
        api.get("payloadiovs/?gtName=mine&majorIOV=1&minorIOV=0", Authorization="Bearer cdb_wrong").ok()


def test_open_writes_ignore_a_token_that_is_not_valid(api, settings):
    settings.CDB_OPEN_WRITES = True
    api.post("pt", {"name": "Gain"}, Authorization="Bearer x").ok()


def grant(**values):
    rule, _ = access.grant(actor="test", **values)
    rules.forget()
    return rule


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
    monkeypatch.setattr(attempts, "PERIOD_SECONDS", 0)
    api.post("pt", {"name": "Third"}, **headers).ok()


def test_addresses_that_a_client_invents_do_not_evade_the_limit(api, settings):
    settings.CDB_BEHIND_PROXY = True
    for number in range(attempts.LIMIT):
        headers = {"X-Forwarded-For": f"192.0.2.{number}, 198.51.100.1", "Authorization": "Bearer cdb_x"}
        api.post("pt", {"name": "Gain"}, **headers).error(401, "invalid_token")
    api.post("pt", {"name": "Gain"}, **headers).error(429, "too_many_attempts")


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

        for _ in range(attempts.LIMIT):
            assert log_in("wrong") == 200
        assert log_in("the right one") == 200
        monkeypatch.setattr(attempts, "PERIOD_SECONDS", 0)
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
