"""Who may do what: each write, with each role, for tags and payload types inside and outside of the pattern of a rule."""

import re
from ipaddress import ip_network

import pytest
from django.test import Client
from pytest import mark

from cdb_rest.api.proposals import read_proposal
from cdb_rest.api.urls import view_of
from cdb_rest.http.security import SAFE_METHODS
from cdb_rest.models import GlobalTag, GlobalTagChange, PayloadIOV, RequestKind
from cdb_rest.routes import ROUTES
from cdb_rest.rules.access import Origin, Principal, Role
from cdb_rest.writes import limits
from cdb_rest.writes.requests import make_request
from tests.api.helpers import INSERTION, MINE, OTHER, PATTERN, ROW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("closed")]


def proposed(kind, tag, **document):
    """The path of a request for a write, which another person has made."""
    if kind == "clear":
        document |= {"payload_type": "Gain", "since": [1, 0], "until": "open"}
    origin = Origin("alice", principal=Principal("alice", "token"))
    proposal = read_proposal(RequestKind(kind), tag, document)
    return f"requests/{make_request(proposal=proposal, document=document, reason='why', origin=origin).id}"


def accepting(tag):
    limits.set_limits(name=tag, closed_until=None, largest_major=None, accepts_requests=True)
    return tag


def proposed_rows(tag):
    rows = [{"payload_type": "Gain", "payload_url": "x", "since": 2}]
    return proposed("import", tag, rows=rows)


# The role that a write to a tag needs, and the write: method, path and body for the name of the tag and the ids of IOVs.
WRITES = {
    "create": (Role.MANAGER, lambda tag, ids: ("POST", "gt", {"name": f"{tag}-new", "status": "unlocked"})),
    "create by alias": (
        Role.MANAGER,
        lambda tag, ids: ("POST", "global-tags", {"name": f"{tag}-new", "status": "locked"}),
    ),
    "clone": (Role.MANAGER, lambda tag, ids: ("POST", f"cloneGlobalTag/source/{tag}-new", None)),
    "lock": (Role.MANAGER, lambda tag, ids: ("PUT", f"gt_change_status/{tag}/locked", None)),
    "freeze": (Role.PUBLISHER, lambda tag, ids: ("PUT", f"gt_change_status/{tag}/frozen", None)),
    "delete": (Role.MANAGER, lambda tag, ids: ("DELETE", f"deleteGlobalTag/{tag}", None)),
    "revert": (Role.MANAGER, lambda tag, ids: ("POST", f"global-tags/{tag}/revert", {"revision": 1})),
    "undo a change": (Role.MANAGER, lambda tag, ids: ("POST", f"global-tags/{tag}/changes/2/undo", None)),
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
        Role.MANAGER,
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
    "clear an interval": (
        Role.MANAGER,
        lambda tag, ids: (
            "POST",
            "payload-iovs/clear",
            {"global_tag": tag, "payload_type": "Gain", "since": [1, 0], "until": "open", "reason": "why"},
        ),
    ),
    "import a file": (
        Role.CONTRIBUTOR,
        lambda tag, ids: (
            "POST",
            f"global-tags/{tag}/import",
            [{"payload_type": "Gain", "payload_url": "x", "since": 2}],
        ),
    ),
    "accept rows": (Role.CONTRIBUTOR, lambda tag, ids: ("POST", f"{proposed_rows(tag)}/accept", None)),
    "accept rows in a locked tag": (
        Role.MANAGER,
        lambda tag, ids: ("POST", f"{proposed_rows(accepting(f'{tag} locked'))}/accept", None),
    ),
    "accept a clearing": (Role.MANAGER, lambda tag, ids: ("POST", f"{proposed('clear', tag)}/accept", None)),
    "accept an undo": (Role.MANAGER, lambda tag, ids: ("POST", f"{proposed('undo', tag, revision=2)}/accept", None)),
    "accept a status": (
        Role.MANAGER,
        lambda tag, ids: ("POST", f"{proposed('status', tag, status='locked')}/accept", None),
    ),
    "accept the status frozen": (
        Role.PUBLISHER,
        lambda tag, ids: ("POST", f"{proposed('status', tag, status='frozen')}/accept", None),
    ),
    "accept a clone": (
        Role.MANAGER,
        lambda tag, ids: ("POST", f"{proposed('clone', f'{tag}-new', clone_of='source')}/accept", None),
    ),
    "reject rows": (Role.CONTRIBUTOR, lambda tag, ids: ("POST", f"{proposed_rows(tag)}/reject", {"comment": "no"})),
    "reject rows for a locked tag": (
        Role.MANAGER,
        lambda tag, ids: ("POST", f"{proposed_rows(f'{tag} locked')}/reject", {"comment": "no"}),
    ),
    "reject a status": (
        Role.MANAGER,
        lambda tag, ids: ("POST", f"{proposed('status', tag, status='frozen')}/reject", {"comment": "no"}),
    ),
    "let requests change a tag": (
        Role.MANAGER,
        lambda tag, ids: ("PUT", f"global-tags/{tag}/limits", {"accepts_requests": True}),
    ),
    "limit a tag": (Role.MANAGER, lambda tag, ids: ("PUT", f"global-tags/{tag}/limits", {"largest_major": 9})),
    "plan an insertion": (
        Role.CONTRIBUTOR,
        lambda tag, ids: ("POST", "payload-iovs/insert", INSERTION | {"global_tag": tag, "dry_run": True}),
    ),
}
# The same for writes that concern no tag, or all.
OTHER_WRITES = {
    "create a type": (Role.CONTRIBUTOR, ("POST", "pt", {"name": "Gain9"})),
    "delete a type": (Role.MANAGER, ("DELETE", "deletePayloadType/Unused", None)),
    "create a list": (Role.CONTRIBUTOR, ("POST", "pl", {"payload_type": "Unused"})),
    "create an IOV": (Role.CONTRIBUTOR, ("POST", "piov", ROW)),
    "create a status": (Role.MANAGER, ("POST", "gtstatus", {"name": "reviewed"})),
    "delete a status": (Role.MANAGER, ("DELETE", "deleteGlobalTagStatus/unused", None)),
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
        assert has_writes == (route.writes is not None or bool(route.reads_by_post)), route


@mark.parametrize("write", ["lock", "create", "clone", "revert", "delete", "accept rows in a locked tag"])
def test_a_manager_of_some_payload_types_cannot_change_a_whole_tag(api, ids, login, write):
    _, request = WRITES[write]
    detail = api(*request(MINE, ids), **login("manager", types="Gain")).error(403, "not_permitted")["detail"]
    assert "all payload types" in detail


OF_A_TYPE = [
    "attach a list", "insert", "insert in bulk", "import a file", "attach an IOV", "move an IOV to another tag",
    "delete an IOV", "accept rows", "accept a clearing", "reject rows",
]  # fmt: skip


@mark.parametrize("write", OF_A_TYPE)
def test_the_payload_type_must_match(api, ids, login, write):
    role, request = WRITES[write]
    headers = login(role, types="Noise")
    assert "for global tag mine and payload type" in api(*request(MINE, ids), **headers).error(403)["detail"]
    api(*request(MINE, ids), **login(role, types="Gain|New")).ok()


@mark.parametrize("write", ["create a type", "delete a type", "create a list"])
def test_the_payload_type_must_match_without_a_tag(api, ids, login, write):
    _, request = OTHER_WRITES[write]
    api(*request, **login("manager", types="Noise.*")).error(403, "not_permitted")


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


@pytest.mark.django_db(transaction=True)
@mark.parametrize(
    ("path", "body"),
    [
        ("payload-iovs/query", {"gtName": "mine", "moments": [[1, 0]]}),
        ("global-tags/mine/affected", {"moments": [[1, 0]]}),
    ],
)
def test_reads_by_post_need_the_role_of_a_reader(api, ids, login, settings, closed, path, body):
    assert api.post(path, body).status == 200
    settings.CDB_ANONYMOUS_READS = False
    api.post(path, body).error(401, "authentication_required")
    assert api.post(path, body, **login("reader")).status == 200


REMOTE = {"REMOTE_ADDR": "10.1.2.3"}


def metrics(headers=None, **variables):
    """The status of a scrape, and the address that connects."""
    return Client().get("/metrics", headers=headers, **variables).status_code


@mark.parametrize(
    ("variables", "status"),
    [
        ({}, 200),
        ({"REMOTE_ADDR": "::ffff:127.0.0.1"}, 200),
        # A Unix socket, to which only nginx connects.
        ({"REMOTE_ADDR": ""}, 200),
        (REMOTE, 404),
        ({"REMOTE_ADDR": "::1", "HTTP_FORWARDED": "for=10.1.2.3"}, 404),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 404),
        ({"REMOTE_ADDR": "", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 404),
        (REMOTE | {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 404),
    ],
)
@mark.parametrize("is_behind_proxy", [True, False])
def test_the_metrics_are_for_this_machine(settings, variables, status, is_behind_proxy):
    settings.CDB_BEHIND_PROXY = is_behind_proxy
    assert metrics(**variables) == status


def test_the_metrics_are_for_configured_networks(settings):
    settings.CDB_METRICS_NETWORKS = [ip_network("10.1.0.0/16"), ip_network("fc00::/7")]
    assert metrics(**REMOTE) == metrics(REMOTE_ADDR="fd00::1") == metrics() == 200
    assert metrics(REMOTE_ADDR="10.2.0.1") == 404
    # nginx in another pod of the network.
    assert metrics({"X-Forwarded-For": "192.0.2.1"}, **REMOTE) == 404


def test_with_closed_reads_the_metrics_are_also_for_readers(login, settings):
    settings.CDB_ANONYMOUS_READS = False
    assert metrics() == 200
    assert metrics(**REMOTE) == metrics({"X-Forwarded-For": "127.0.0.1"}) == 401
    assert metrics(login("reader"), **REMOTE) == 200
    assert metrics({"Authorization": "Bearer cdb_x"}, **REMOTE) == 401


def test_every_route_is_closed_but_the_public_ones(api, settings):
    settings.CDB_ANONYMOUS_READS = False
    for path in [path for route in ROUTES for path in route.paths]:
        answer = api.get(re.sub("<.*?>", "1", path))
        assert (answer.status == 401) == (path != "whoami"), (path, answer.json)
