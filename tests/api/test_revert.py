"""Reverting a tag and undoing a change: the request, the response, what reads see afterwards, roles, the command."""

import pytest
from django.core.management import CommandError, call_command

from cdb_rest.models import GlobalTagChange
from cdb_rest.rules.access import Role
from tests.api.helpers import body, insert, rows

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "global-tags/tag/revert"
LOOKUPS = [f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV=0&strict=1&window=1" for major in range(6)]


@pytest.fixture
def changed(api, tag):
    """The tag of `tag`, whose IOV is cut by a second one. Returns its revision before."""
    before = tag.revision
    insert(api, "second", [3, 0])
    return before


def answers(api, suffix=""):
    """The lookups with the headers that say how long they are valid."""
    found = [api.get(path + suffix) for path in LOOKUPS]
    windows = [(one.headers["CDB-Valid-Since"], one.headers["CDB-Valid-Until"]) for one in found]
    return [one.ok() for one in found], windows


def documents(api):
    """The IOVs with their ids."""
    return [one["payload_iov"] for one in api.get("globalTag/tag").ok()["payload_lists"]]


def test_lookups_answer_as_they_did(api, tag):
    before, number, iovs = answers(api), tag.revision, documents(api)
    insert(api, "second", [3, 0])
    assert answers(api) != before
    answer = api.post(PATH, {"revision": number, "comment": "wrong gains"}).ok()
    assert answer == {
        "detail": "Payload lists attached: 0, of them new: 0; detached: 0; payload IOVs removed: 2; added: 1.",
        "dry_run": False,
        "changed": True,
        "revision": number + 2,
        "status": None,
        "payload_types": [
            {
                "payload_type": "Gain",
                "list_detached": None,
                "list_attached": None,
                "list_created": False,
                "payload_iovs_removed": 2,
                "payload_iovs_added": 1,
            }
        ],
    }
    assert answers(api) == before == answers(api, f"&rev={number}") == answers(api, f"&rev={number + 2}")
    assert documents(api) == iovs
    change = api.get("global-tags/tag/changes").ok()["results"][0]
    assert (change["action"], change["comment"], change["revision"]) == ("revert", "wrong gains", number + 2)
    assert (change["payload_iovs_before"], change["payload_iovs_after"]) == (2, 1)


def test_unknown_and_unreadable_revisions(api, changed):
    api.post(PATH, {"revision": 99}).error(404, "revision_not_found")
    api.post("global-tags/unknown/revert", {"revision": 1}).error(404, "global_tag_not_found")
    GlobalTagChange.objects.filter(revision=changed).update(has_history=False)
    api.post(PATH, {"revision": changed}).error(410, "revision_pruned")


def test_a_key_that_was_used_for_another_tag_is_refused(api, changed):
    """The bodies are the same; only the paths differ."""
    key = {"Idempotency-Key": "7d1c"}
    api.post("cloneGlobalTag/tag/copy").ok()
    api.post(PATH, {"revision": 1}, **key).ok()
    api.post("global-tags/copy/revert", {"revision": 1}, **key).error(409, "idempotency_key_reused")


def undo(api, revision, **members):
    return api.post(f"global-tags/tag/changes/{revision}/undo", members or None)


def place(api, url, since, until, **headers):
    """Insert a payload; returns the new revision of the tag."""
    row = body(payload_url=url, checksum="", since=[since, 0], until=until if until == "open" else [until, 0])
    return api.post("payload-iovs/insert", row, **headers).ok()["revisions"]["tag"]


def urls(api):
    """The payload in each of the first major numbers."""
    paths = [f"payloadiovs/?gtName=tag&majorIOV={major}&minorIOV=0&strict=1" for major in range(1, 8)]
    return [[row[1] for row in api.get(path).ok()] for path in paths]


def test_an_undone_insertion_leaves_the_later_ones(api, tag):
    """Each insertion cuts the open IOV of the tag, also what the first one left of it."""
    mistake = place(api, "mistake", 3, 4)
    place(api, "before", 2, 3)
    place(api, "after", 4, 5)
    known = urls(api)
    assert undo(api, mistake, dry_run=True).ok()["changed"] is True and urls(api) == known
    done = undo(api, mistake, comment="wrong gains").ok()
    assert urls(api) == [["first"], ["before"], ["first"], ["after"], ["first"], ["first"], ["first"]]
    change = api.get(f"global-tags/tag/changes/{done['revision']}").ok()
    assert (change["action"], change["comment"], change["after"]["undone"]) == (
        "revert",
        "wrong gains",
        {"revision": mistake},
    )
    assert undo(api, done["revision"]).ok()["changed"] is True and urls(api) == known


def test_what_stands_in_the_way_is_named(api, tag):
    mistake = place(api, "mistake", 3, 6)
    later = place(api, "later", 4, 5)
    before = rows(api)
    detail = undo(api, mistake).error(409, "undo_conflict")["detail"]
    assert f"Gain has later at (4, 0) since revision {later} (insert by " in detail and rows(api) == before
    undo(api, later).ok()
    undo(api, mistake).ok()
    assert urls(api) == [["first"]] * 7
    assert "Delete the tag instead" in undo(api, 1).error(409, "undo_conflict")["detail"]
    undo(api, 99).error(404, "change_not_found")


def test_status_and_roles_are_those_of_an_insertion_or_a_removal(api, tag, closed, login):
    manager, contributor = login(Role.MANAGER), login(Role.CONTRIBUTOR)
    replaced = place(api, "replaced", 3, 4, **contributor)
    cleared = {"global_tag": "tag", "payload_type": "Gain", "since": [5, 0], "until": [6, 0], "reason": "off"}
    cleared = api.post("payload-iovs/clear", cleared, **manager).ok()["revision"]
    added = place(api, "added", 5, 6, **contributor)
    path = "global-tags/tag/changes/{}/undo"
    # Afterwards no payload would be valid where one is valid now.
    api.post(path.format(added), **contributor).error(403, "not_permitted")
    api.post(path.format(added), **manager).ok()
    api.post(path.format(replaced), **contributor).ok()
    api.put("gt_change_status/tag/locked", **manager).ok()
    api.post(path.format(cleared), **contributor).error(403, "not_permitted")
    undone = api.post(path.format(cleared), **manager).ok()["revision"]
    assert urls(api) == [["first"]] * 7
    locked = GlobalTagChange.objects.get(action="status").revision
    api.post(path.format(undone), **manager).error(409, "global_tag_locked")
    assert api.post(path.format(locked), **manager).ok()["status"] == "unlocked"


def test_a_list_that_was_replaced_comes_back_if_the_other_one_is_as_it_was(api, tag):
    name = api.post("pl", {"payload_type": "Gain"}).ok()["name"]
    api.put("pl_attach", {"global_tag": "tag", "payload_list": name}).ok()
    replaced = GlobalTagChange.objects.latest("number").revision
    later = place(api, "later", 4, 5)
    assert (
        f"has another payload list since revision {later}" in undo(api, replaced).error(409, "undo_conflict")["detail"]
    )
    undo(api, later).ok()
    [one] = undo(api, replaced).ok()["payload_types"]
    assert one["list_detached"] == name and urls(api) == [["first"]] * 7


def test_the_command_undoes_a_change(api, tag, capsys):
    mistake = place(api, "mistake", 3, 6)
    call_command("undo_change", "tag", mistake, "--dry-run")
    assert "Would undo" in capsys.readouterr().out and ["mistake"] in urls(api)
    call_command("undo_change", "tag", mistake, "--comment", "wrong gains")
    assert "IOVs removed: 3, added: 1" in capsys.readouterr().out and urls(api) == [["first"]] * 7
    with pytest.raises(CommandError, match="Delete the tag instead"):
        call_command("undo_change", "tag", 1)
