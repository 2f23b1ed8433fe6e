"""Requests: every command of `cdb request`, from the proposal to the decision."""

import json

import pytest

from .conftest import new_name

ROWS = "payload_type,payload_url,since,until\nPED,ped/1.root,5,6\n"


@pytest.fixture
def locked(api, service, monkeypatch):
    """A locked tag that accepts requests, in which a payload is valid from 0 on; the client has the token of a manager."""
    token = service.manage("token", "create", "--name", new_name("robot"), "--role", "manager").stdout
    monkeypatch.setenv("CDB_TOKEN", token.strip())
    tag = api.make_tag([("PED", "ped/0.root", [0, 0], "open")], status="locked")
    api("PUT", f"global-tags/{tag}/limits", {"accepts_requests": True})
    return tag


@pytest.fixture
def request_(cdb):
    """Runs a command of `cdb request`, and returns its JSON."""

    def run(*arguments):
        done = cdb("request", *arguments, "-o", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    return run


def test_every_kind_is_proposed_and_accepted(request_, api, locked, tmp_path):
    (tmp_path / "new.csv").write_text(ROWS)
    clone = new_name()
    proposals = [
        ("import", locked, tmp_path / "new.csv"),
        ("clear", locked, "PED", "--since", "5,3", "--until", "6"),
        ("undo", locked, "6"),
        ("clone", locked, clone),
        ("status", locked, "unlocked"),
    ]
    for kind, *arguments in proposals:
        assert request_(kind, *arguments, "--reason", "r", "--dry-run")["dry_run"] is True
        made = request_(kind, *arguments, "--reason", f"because of {kind}")
        assert (made["state"], made["kind"]) == ("open", kind)
        number = made["number"]
        assert request_("accept", number, "--dry-run", "--confirm") and request_("show", number)["state"] == "open"
        request_("accept", number, "--confirm", "--reason", "fine")
        assert request_("show", number)["state"] == "accepted"
    found = request_("list", "--state", "accepted", "--tag", locked)
    assert [row["kind"] for row in found] == ["status", "undo", "clear", "import"]
    assert request_("list", "--tag", clone)[0]["reason"] == "because of clone"
    assert api("GET", f"global-tags/{locked}/changes")["results"][0]["request"] == found[0]["number"]


def test_requests_are_discussed_rejected_and_withdrawn(cdb, request_, locked):
    numbers = [request_("status", locked, "unlocked", "-m", "r")["number"] for _ in range(2)]
    request_("comment", numbers[0], "why?")
    assert [row["text"] for row in request_("show", numbers[0])["comments"]] == ["why?"]
    request_("reject", numbers[0], "--reason", "no")
    request_("withdraw", numbers[1])
    assert [row["state"] for row in request_("list", "--tag", locked)] == ["withdrawn", "rejected"]
    assert [row["number"] for row in request_("list", "--tag", locked, "--last", "1")] == [numbers[1]]
    assert (cdb("request", "accept", numbers[0]).code, cdb("request", "show", "999999").code) == (5, 4)


def test_wrong_rows_are_named(cdb, locked, tmp_path):
    (tmp_path / "new.csv").write_text(ROWS + "PED,ped/2.root,seven,8\n")
    done = cdb("request", "import", locked, tmp_path / "new.csv", "-m", "r")
    assert done.code == 2 and "new.csv, line 3: " in done.err and locked in done.err
