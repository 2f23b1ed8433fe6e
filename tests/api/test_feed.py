"""`changes`: no change is lost, repeated or separated from its write, whoever writes at the same time. And the Atom feeds."""

import threading
import time
from base64 import b64encode
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from django.db import transaction

from cdb_rest.maintenance.pruning import Limit, prune_history
from cdb_rest.models import ChangeAction, GlobalTag, GlobalTagChange
from cdb_rest.rules.access import Origin
from cdb_rest.writes import global_tags, positions
from cdb_rest.writes.change_log import Changes
from tests.conftest import Api
from tests.writes.test_concurrency import together

pytestmark = pytest.mark.django_db(transaction=True)
ATOM = "{http://www.w3.org/2005/Atom}"


def change(*names, comment=""):
    """One write that changes these tags."""
    with transaction.atomic():
        changes = Changes()
        for tag in GlobalTag.objects.filter(name__in=names):
            changes.of_tag(tag.id)
        changes.record(ChangeAction.INSERT, Origin("test", comment))


def read(api, cursor="0", limit=100):
    return api.get(f"changes?after={cursor}&limit={limit}").ok()


def read_all(api, cursor="0", limit=100):
    """What a program reads until there is no more: tag and revision of each change, and the cursor."""
    found = []
    while True:
        page = read(api, cursor, limit)
        assert not page["lost"]
        found += [(one["global_tag"], one["revision"]) for one in page["changes"]]
        cursor = page["cursor"]
        if not page["more"]:
            return found, cursor


def test_pages_of_whole_writes(api, build):
    for name in ("a", "b", "c"):
        build.tag(name)
    assert read(api) == {"changes": [], "cursor": "0", "more": False, "lost": False}
    start = read(api, "now")["cursor"]
    for names in (("a",), ("a", "b", "c"), ("b",)):
        change(*names, comment="why")
    page = read(api, start, 2)
    assert [(one["global_tag"], one["revision"]) for one in page["changes"]] == [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
    assert page["changes"][0] == api.get("global-tags/a/changes?order=asc").ok()["results"][0]
    assert (page["more"], page["lost"]) == (True, False)
    assert read_all(api, page["cursor"]) == ([("b", 2)], read(api, "now")["cursor"])
    for number in range(1, 5):
        assert len(read_all(api, limit=number)[0]) == 5

    answer = api.get("changes?limit=1")
    assert answer.headers["Retry-After"] == "0" and "no-cache" in answer.headers["Cache-Control"]
    assert api.get("changes?limit=1", **{"If-None-Match": answer.headers["ETag"]}).status == 304
    path = f"changes?after={read(api, 'now')['cursor']}"
    answer = api.get(path)
    known = {"If-None-Match": answer.headers["ETag"]}
    answer = api.get(path, **known)
    assert (answer.status, answer.headers["Retry-After"]) == (304, "5")
    change("a")
    assert len(api.get(path, **known).ok()["changes"]) == 1


WRONG = "after=x after= after=-1 after=1.5 after=9223372036854775808 limit=0 limit=1001 limit=x after=1&before=2"


@pytest.mark.parametrize("query", WRONG.split())
def test_a_wrong_request_is_a_clear_error(api, query):
    assert api.get(f"changes?{query}").status == 400


def test_the_log_of_a_deleted_tag_stays_and_a_lost_cursor_is_named(api, build):
    build.tag("a")
    change("a")
    first = read(api)["cursor"]
    prune_history(limit=Limit(keep=0))
    global_tags.delete_global_tag(name="a", keep_history=False)
    found, last = read_all(api)
    assert len(found) == 2 and not read(api, first)["lost"]
    # What a restoration to an earlier state leaves.
    GlobalTagChange.objects.filter(position=int(last)).delete()
    page = read(api, last)
    assert (page["changes"], page["cursor"], page["lost"]) == ([], first, True)
    assert not read(api, first)["lost"]
    assert read(api, "99")["lost"]


def test_a_late_commit_with_a_smaller_number_comes_later(api, build):
    for name in ("slow", "quick"):
        build.tag(name)
    recorded, go_on = threading.Event(), threading.Event()

    def write_slowly():
        with transaction.atomic():
            change("slow")
            recorded.set()
            assert go_on.wait(10)

    def follow():
        assert recorded.wait(10)
        change("quick")
        first, cursor = read_all(Api())
        go_on.set()
        while not (second := read_all(Api(), cursor)[0]):
            time.sleep(0.01)
        return first, second

    assert together([write_slowly, follow])[1] == ([("quick", 1)], [("slow", 1)])
    numbers = dict(GlobalTagChange.objects.values_list("global_tag", "number"))
    assert numbers["slow"] < numbers["quick"]


def test_readers_beside_writers_get_each_change_once_in_the_order_of_its_tag(build, monkeypatch):
    monkeypatch.setattr(positions, "NUMBERED_AT_ONCE", 3)
    tags = [build.tag(f"tag{number}").name for number in range(6)]
    writers, done = 6, []

    def write(number):
        for turn in range(25):
            # Some writes change several tags.
            change(*(tags[(number + turn * step) % len(tags)] for step in range(1 + turn % 3)))
        done.append(number)

    def follow(number):
        api, cursor, found = Api(), "0", []
        is_over = False
        while not is_over:
            is_over = len(done) == writers
            some, cursor = read_all(api, cursor, 1 + number)
            found += some
        return found

    results = together([*(lambda n=n: write(n) for n in range(writers)), *(lambda n=n: follow(n) for n in range(4))])
    expected = sorted(GlobalTagChange.objects.values_list("global_tag", "revision"))
    for found in results[writers:]:
        assert sorted(found) == expected and found == results[writers]
        for name in tags:
            revisions = [revision for tag, revision in found if tag == name]
            assert revisions == sorted(revisions)
    by_position = GlobalTagChange.objects.order_by("position", "number").values_list("position", "number")
    assert all((a[0] == b[0]) == (a[1] == b[1]) for a, b in pairwise(by_position))


def feed(client, path, **headers):
    """The entries of a feed, after a check that it has what RFC 4287 requires."""
    response = client.get(path, headers=headers)
    assert (response.status_code, response["Content-Type"]) == (200, "application/atom+xml; charset=utf-8")
    root = ElementTree.fromstring(response.content)  # noqa: S314 -- it is our own
    entries = root.findall(f"{ATOM}entry")
    for one in (root, *entries):
        assert all(one.find(f"{ATOM}{name}").text for name in ("id", "title", "updated"))
        assert one.find(f"{ATOM}link").get("href").startswith("http://testserver/")
    assert all(one.find(f"{ATOM}author/{ATOM}name").text for one in entries)
    return [{name: one.find(f"{ATOM}{name}").text for name in ("id", "title", "summary")} for one in entries], response


def test_atom_feeds(api, client, build):
    for name in ("a", "b<&>\ufffe"):
        build.tag(name)
    for number in range(60):
        change("a", comment=f"<b>number</b> {number} & \x01\ufffe")
    change("b<&>\ufffe")
    GlobalTagChange.objects.filter(global_tag="a", revision=60).update(
        source={"request": 5, "requested_by": "alice"}, payload_iovs_after=2
    )
    entries, response = feed(client, "/tags/a/history.atom")
    assert len(entries) == 50 and len({one["id"] for one in entries}) == 50
    assert entries[0]["id"] == "http://testserver/tags/a/history/60" and entries[0]["title"].startswith("a 60: ")
    comment = "<p>&lt;b&gt;number&lt;/b&gt; 59 &amp; \ufffd\ufffd</p>"
    assert entries[0]["summary"] == f"{comment}<p>IOVs: 0 removed, 2 added</p><p>Request 5 by alice</p>"
    assert client.get(entries[0]["id"]).status_code == 200
    known = {"If-None-Match": response["ETag"]}
    assert client.get("/tags/a/history.atom", headers=known).status_code == 304
    change("a")
    again, _ = feed(client, "/tags/a/history.atom", **known)
    assert again[1:] == entries[:-1]
    everything, _ = feed(client, "/history.atom")
    assert everything[0]["id"] == again[0]["id"] and everything[1]["title"].startswith("b<&>\ufffd 1: ")
    assert client.get("/tags/missing/history.atom").status_code == 404
    for path in ("/tags/a/history", "/log"):
        assert 'type="application/atom+xml"' in client.get(path).content.decode()


def test_a_feed_reader_sends_a_token_as_its_password(api, build, login, closed, settings, caplog):
    settings.CDB_ANONYMOUS_READS = False
    build.tag("a")
    change("a")
    bearer = login("reader")
    token = bearer["Authorization"].removeprefix("Bearer ")

    def status(path, password=token, method="GET", scheme="Basic"):
        credentials = b64encode(f"any:{password}".encode()).decode()
        response = api._client.generic(method, path, headers={"Authorization": f"{scheme} {credentials}"})
        return response.status_code, response.get("WWW-Authenticate", "")

    for path in ("/tags/a/history.atom", "/history.atom", "/history.atom/"):
        assert (
            status(path)[0]
            == status(path, method="HEAD")[0]
            == api._client.get(path, headers=bearer).status_code
            == 200
        )
        for wrong in ("", "secret", token[:-1] + "!", "ü"):
            refused, challenge = status(path, wrong)
            assert refused == 401 and challenge.startswith('Basic realm="cdb"') and "Bearer" in challenge
        assert status(path, scheme="basic ")[0] == 200
        assert api._client.get(path, headers={"Authorization": "Basic x"}).status_code == 401
    assert status("/history.atom", method="POST")[0] == 401
    for path in ("/tags/a/history", "/log", "/api/cdb_rest/changes", "/api/cdb_rest/global-tags/history.atom"):
        refused, challenge = status(path)
        assert refused == 401 and "Basic" not in challenge
    assert token not in caplog.text
