"""The web pages: contents, errors, headers, and texts of users, which never become markup."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.core.management import call_command

from cdb_rest.models import GlobalTag
from tests.api.helpers import insert
from tests.conftest import ServiceClient

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "<script>alert('x')</script>\"'&{{ 7|add:42 }}"


@pytest.fixture
def tiny(db):
    call_command("seed_scenario", "tiny", verbosity=0)


def paths_of(name, payload_type, url):
    tag, kind = quote(name, safe=""), quote(payload_type, safe="")
    return [
        f"/?tag={tag}&major=5&minor=0",
        f"/tags?q={quote(name[:5])}",
        f"/tags/{tag}",
        f"/tags/{tag}?rev=1",
        f"/tags/{tag}/rows?type={kind}&x=100",
        f"/tags/{tag}/lists/{kind}",
        f"/tags/{tag}/why?type={kind}&at=5,0",
        f"/tags/{tag}/history",
        f"/tags/{tag}/history/1",
        f"/tags/{tag}/coverage",
        f"/tags/{tag}/coverage?required={kind},none",
        f"/compare?a={tag}&rev_a=1",
        f"/compare?a={tag}&rev_a=1&type={kind}",
        f"/payloads?value={quote(url)}&removed=1",
    ]


def test_all_pages_of_a_tag(browser, tiny):
    followed = set()
    for path in paths_of("tiny", "Pixel_Alignment", "x"):
        text = browser.get(path)
        # All links of a page lead somewhere, except those to single files.
        links = {unescape(found) for found in re.findall(r'href="(/[^"]*)"', text)} - followed
        followed |= links
        for link in links:
            assert ServiceClient(headers={"Accept": "text/html"}).get(link).status_code == 200, (path, link)


def test_texts_of_users_never_become_markup(browser, api, build):
    name = HOSTILE.replace("/", "|")
    build.tag(name)
    GlobalTag.objects.update(author=HOSTILE, description=HOSTILE)
    build.list(None, name)
    row = {"global_tag": name, "payload_type": name, "payload_url": HOSTILE, "checksum": HOSTILE}
    api.post("payload-iovs/insert", row | {"since": [1, 0], "until": [9, 0], "comment": HOSTILE}).ok()
    for path in paths_of(name, name, HOSTILE):
        text = browser.get(path)
        assert "<script>alert" not in text and "&amp;49" not in text, path
        assert "&lt;script&gt;alert" in text, path
    assert "&lt;script&gt;" in browser.get(f"/{quote(HOSTILE)}", 404)


def test_what_the_pages_say(browser, api, tag):
    insert(api, "later", [7, 0])
    assert '<span class="badge valid">valid</span>' in browser.get("/?tag=tag&major=7")
    listed = browser.get("/tags/tag/lists/Gain?since=0,0")
    assert re.findall(r"<code>(first|later)</code>", listed) == ["first", "later"] and "badge gap" in listed
    assert re.findall(
        r"<code>(first|later)</code>", browser.get("/tags/tag/rows?type=Gain&since=7,0&until=8,0&x=0")
    ) == ["later"]
    assert "1 difference in 1 payload type" in re.sub(r"\s+", " ", browser.get("/compare?a=tag&rev_a=2"))
    assert "The tag after this change" in browser.get("/tags/tag/history/2")
    assert "1 payload type with gaps" in browser.get("/tags/tag/coverage?since=0,0&until=9,0")
    assert "curl &#x27;http://testserver/api/cdb_rest/global-tags/tag/coverage?since=0,0&amp;until=9,0" in browser.get(
        "/tags/tag/coverage?since=0,0&until=9,0"
    )


def cells_of(page):
    """The texts of the cells of each row of a table."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page.split("<tbody>")[1], re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


@pytest.fixture
def with_gap(build):
    """A payload list with a gap from 3, 7 to 3, 9; its IOVs end at 5, 0."""
    gain = build.list(build.tag("tag"), "Gain")
    for url, since, until in (("a", (2, 0), (3, 7)), ("b", (3, 9), (4, 0)), ("c", (4, 0), (5, 0))):
        build.iov(gain, since, until, url=url)


def test_the_rows_at_a_pixel_have_their_ends_and_the_gaps(browser, with_gap):
    assert cells_of(browser.get("/tags/tag/rows?type=Gain&since=2,0&until=4,0&width=2&x=1")) == [
        ["a", "2, 0", "3, 7"],
        ["gap", "3, 7", "3, 9"],
        ["b", "3, 9", "4, 0"],
    ]
    assert cells_of(browser.get("/tags/tag/rows?type=Gain&since=2,0&until=6,0&width=4&x=3")) == [
        ["gap", "5, 0", "open"]
    ]
    assert cells_of(browser.get("/tags/tag/rows?type=Gain&since=2,0&until=6,0&width=4&x=0"))[0] == ["a", "2, 0", "3, 7"]
    # A gap is whole, also if the pixel has only a part of it.
    assert cells_of(browser.get("/tags/tag/rows?type=Gain&since=3,8&until=3,9&width=1&x=0")) == [
        ["gap", "3, 7", "3, 9"]
    ]
    before = browser.get("/tags/tag/rows?type=Gain&since=1,0&until=2,0&width=1&x=0")
    assert "starts at 2, 0" in before and "gap" not in before


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("", "2,0", "6,0"),
        ("since=3,0", "3,0", "6,0"),
        ("until=4,0", "1,0", "4,0"),
        ("since=8,0", "8,0", "8,1000"),
        # Nothing changes in this major number.
        ("since=4,0&until=5,0&left=0&right=1", "4,0", "4,2"),
        ("since=7,0&until=8,0", "7,0", "7,1000"),
    ],
)
def test_a_timeline_shows_what_is_in_use(with_gap, query, since, until):
    found = ServiceClient().get(f"/tags/tag/lanes?{query}").json()
    assert (found["since"], found["until"]) == (since, until)


def test_a_deleted_tag_has_its_past(browser, api, tag):
    revision = api.get("globalTag/tag?light").headers["CDB-Revision"]
    api.delete("deleteGlobalTag/tag").ok()
    assert f"revision {revision}" in browser.get(f"/tags/tag?rev={revision}")
    browser.get(f"/tags/tag/lists/Gain?rev={revision}")
    browser.get(f"/tags/tag/coverage?rev={revision}")
    browser.get(f"/tags/tag/why?type=Gain&at=5&rev={revision}")
    assert "Delete" in browser.get("/tags/tag/history")
    for path in ("/tags/tag", "/tags/tag/insert", "/tags/tag/manage"):
        browser.get(path, 404)


def test_the_list_of_tags_is_filtered_and_sorted(browser, build):
    for number in range(60):
        build.tag(f"tag{number:02}")
    names = re.findall(r'/tags/(tag\d\d)"', browser.get("/tags?sort=name"))
    assert names == [f"tag{number:02}" for number in range(50)]
    assert re.findall(r'/tags/(tag\d\d)"', browser.get("/tags?sort=-name&page=2")) == [
        f"tag{9 - n:02}" for n in range(10)
    ]
    assert re.findall(r'/tags/(tag\d\d)"', browser.get("/tags?q=G07")) == ["tag07"]
    response = ServiceClient(headers={"HX-Request": "true"}).get("/tags?q=tag07")
    assert "HX-Request" in response["Vary"]
    part = response.content.decode()
    assert "tag07" in part and "<html" not in part


def test_closed_reads_need_the_role_reader(browser, tag, settings):
    settings.CDB_OPEN_WRITES = settings.CDB_ANONYMOUS_READS = False
    for path in ["/", *paths_of("tag", "Gain", "x"), "/tags/tag/lanes"]:
        assert "log in" in browser.get(path, 401).lower(), path


def test_a_person_who_may_write_is_named_or_can_log_in(browser, tag, settings, django_user_model):
    assert "Log in" not in browser.get("/tags")
    settings.CDB_OPEN_WRITES = False
    assert 'href="/login?next=%2Ftags%3Fq%3Dx" data-log-in>Log in</a>' in browser.get("/tags?q=x")
    client = ServiceClient(headers={"Accept": "text/html"})
    client.force_login(django_user_model.objects.create_user("an expert", password="x"))
    page = client.get("/tags").content.decode()
    assert "<li>an expert</li>" in page and "Log in" not in page
    assert 'href="/logout">Log out</a>' in page
    # A page without a form leaves the token of forms in other tabs as it is.
    assert "csrftoken" not in client.cookies
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', client.get("/logout").content.decode())[1]
    strict = ServiceClient(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post("/logout").status_code == 403 and "an expert" in client.get("/tags").content.decode()
    assert strict.post("/logout/", {"csrfmiddlewaretoken": token})["Location"] == "/"
    assert "You are not logged in" in client.get("/logout").content.decode()
    assert "Log in" in client.get("/tags").content.decode()
    # Also a person who may read nothing can log out.
    settings.CDB_ANONYMOUS_READS = False
    client.force_login(django_user_model.objects.get())
    assert client.get("/tags").status_code == 403 and "as an expert" in client.get("/logout").content.decode()


def test_a_timeline_has_differences_and_a_marker(api, tag):
    before = api.get("globalTag/tag?light").headers["CDB-Revision"]
    insert(api, "later", [7, 0])
    path = "/tags/tag/lanes?type=Gain&since=0,0&until=10,0&width=10"
    plain = ServiceClient().get(path).json()
    lane = {"states": "ovvvvvvvvv", "changes": "0100000100", "ends": "0000000e00", "is_open": True}
    assert plain["marker"] is None and plain["lanes"] == {"Gain": lane}
    found = ServiceClient().get(f"{path}&against={before}&at=7,5").json()
    assert found["marker"] == 7 and found["lanes"]["Gain"]["differs"] == "0000000111"
    same = ServiceClient().get(f"{path}&against={int(before) + 1}&at=10,0").json()
    assert same["marker"] is None and same["lanes"]["Gain"]["differs"] == "0" * 10
    assert ServiceClient().get(f"{path}&rev={before}").json()["lanes"]["Gain"]["changes"] == "0100000000"


def test_the_reason_names_the_change_and_what_it_replaced(browser, api, tag):
    insert(api, "later", [7, 0])
    revision = api.get("globalTag/tag?light").headers["CDB-Revision"]
    text = browser.get("/tags/tag/why?type=Gain&at=8,0")
    assert f'/tags/tag/history/{revision}"' in text and re.findall(r"<code>(first|later)</code>", text) == [
        "later",
        "first",
    ]
    text = browser.get("/tags/tag/why?type=Gain&at=0,5")
    assert "no IOV of the payload list starts" in text and "beginning of the recorded history" in text
    browser.get("/tags/tag/why?type=Gain", 400)
    browser.get("/tags/tag/why?type=none&at=1,0", 404)
    assert 'why?type=Gain&amp;at=8,0">Why?</a>' in browser.get("/?tag=tag&major=8")


def test_pages_of_a_past_revision_are_as_they_were(browser, api, tag):
    """Also the default window, after IOVs were cut, hidden, deleted and replaced by another list."""
    row = {"global_tag": "tag", "payload_type": "Gain", "checksum": "c"}
    seen = {}

    def look(rev=""):
        parts = [
            ServiceClient().get(f"/tags/tag/lanes?type=Gain&width=40{window}{rev}").json()
            for window in ("", "&since=2,0&until=7,0")
        ]
        rows = re.findall(r"<td>(\d+, \d+|open)</td>", browser.get(f"/tags/tag/lists/Gain?x=1{rev}"))
        return parts, rows

    def note():
        seen[api.get("globalTag/tag?light").headers["CDB-Revision"]] = look()

    note()
    intervals = [([3, 0], [5, 7]), ([5, 3], "next"), ([0, 0], [2, 0]), ([4, 0], [4, 1]), ([9, 9], "open")]
    for number, (since, until) in enumerate(intervals):
        api.post("payload-iovs/insert", row | {"payload_url": f"u{number}", "since": since, "until": until}).ok()
        note()
    api.delete("deletePayloadIOV/tag/Gain/4/0/4/1").ok()
    note()
    api.put(
        "pl_attach", {"global_tag": "tag", "payload_list": api.post("pl", {"payload_type": "Gain"}).ok()["name"]}
    ).ok()
    note()
    assert len(seen) == 8
    for revision, expected in seen.items():
        assert look(f"&rev={revision}") == expected, revision
