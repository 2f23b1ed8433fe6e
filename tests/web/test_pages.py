"""The web pages: contents, errors, headers, and texts of users, which never become markup."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from django.core.management import call_command

from cdb_rest.compiled.maintenance import Maintenance
from cdb_rest.models import GlobalTag, GlobalTagChange
from cdb_web.views import compare
from tests.api.helpers import body, insert
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
        f"/tags/{tag}/manage",
        f"/types/{kind}",
        f"/types?q={kind}",
        f"/tags/{tag}/history",
        f"/tags/{tag}/history/1",
        f"/log?tag={tag}",
        f"/requests?tag={tag}&state=",
        f"/tags/{tag}/coverage",
        f"/tags/{tag}/coverage?required={kind},none",
        f"/compare?a={tag}&rev_a=1",
        f"/compare?a={tag}&rev_a=1&type={kind}",
        f"/affected?a={tag}&rev_a=1",
        f"/tags/{tag}/compiled",
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
    assert re.findall(r"<code>(first|later)</code>", listed) == ["first", "later"] and "before the first IOV" in listed
    assert re.findall(
        r"<code>(first|later)</code>", browser.get("/tags/tag/rows?type=Gain&since=7,0&until=8,0&x=0")
    ) == ["later"]
    assert "1 difference in 1 payload type" in re.sub(r"\s+", " ", browser.get("/compare?a=tag&rev_a=2"))
    assert "The tag after this change" in browser.get("/tags/tag/history/2")
    assert "1 payload type with gaps" in browser.get("/tags/tag/coverage?since=0,0&until=9,0")
    assert "curl &#x27;http://testserver/api/cdb_rest/global-tags/tag/coverage?since=0,0&amp;until=9,0" in browser.get(
        "/tags/tag/coverage?since=0,0&until=9,0"
    )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [4, 3, 2, 1]),
        ("payload_type=Noise", [3]),
        ("payload_type=Gain", [4, 2]),
        ("action=create", [1]),
        ("actor=nobody", []),
        ("search=WHY", [4]),
        ("since=2000-01-01", [4, 3, 2, 1]),
        ("until=2000-01-01T12:00", []),
        ("payload_type=Gain&search=why", [4]),
    ],
)
def test_changes_are_found_by_payload_type_time_person_and_text(browser, api, tag, query, found):
    api.post("pt", {"name": "Noise"}).ok()
    insert(api, "noise", [2, 0], payload_type="Noise")
    api.post("payload-iovs/insert", body(payload_url="later", since=[7, 0], comment="This is why")).ok()
    for path in ("/tags/tag/history", "/log"):
        page = browser.get(f"{path}?{query}")
        assert [int(one) for one in re.findall(r'/tags/tag/history/(\d+)"', page)] == found
    listed = api.get(f"global-tags/tag/changes?{query}").ok()
    assert [one["revision"] for one in listed["results"]] == found and listed["count"] == len(found)


def test_a_large_change_is_folded(browser, api, tag):
    rows = [body(payload_url=f"url{major}", since=[major, 0], until=[major + 1, 0]) for major in range(2, 302)]
    api.post("payload-iovs/insert", rows).ok()
    page = browser.get("/tags/tag/history/3")
    assert page.count("<code>url") == 100 and "300 intervals with other payloads" in page
    assert re.search(r'<details class="differences">', page)


def cells_of(page):
    """The texts of the cells of each row of a table."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page.split("<tbody>")[1], re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


@pytest.mark.parametrize(("mode", "first", "last"), [("continuous", "5, 0", "9, 7"), ("discrete", "4, end", "9, 7")])
def test_the_end_on_all_pages_is_the_effective_one(browser, api, tag, build, settings, mode, first, last):
    """The earlier one of the stored end and the next start; the stored one is a note."""
    settings.CDB_IOV_MODE = mode
    shared = build.list(build.tag("other"), "Gain")
    build.iov(shared, (1, 0), url="first")
    build.iov(shared, (5, 0), (9, 7), url="second")
    ends = {
        "/?tag=other&major=2": f"{first} stored: open",
        "/?tag=other&major=6": last,
        "/?tag=other&base=tag&major=6": last,
        "/payloads?value=first": f"{first} stored: open",
        "/payloads?value=second": last,
        "/tags/other/why?type=Gain&at=2,0": f"{first} stored: open",
        "/tags/other/lists/Gain": f"{first} stored: open",
        "/tags/other/rows?type=Gain&since=1,0&until=2,0&width=1&x=0": f"{first} stored: open",
    }
    for path, end in ends.items():
        assert end in [cell for row in cells_of(browser.get(path)) for cell in row], path
    # A use of the past ends where it did then.
    insert(api, "later", [7, 0])
    api.delete(
        "deletePayloadIOV/tag/Gain/1/0/7/0" if mode == "continuous" else f"deletePayloadIOV/tag/Gain/1/0/6/{2**63 - 1}"
    ).ok()
    assert ("7, 0" if mode == "continuous" else "6, end") in cells_of(browser.get("/payloads?value=first&removed=1"))[
        -1
    ]


def test_a_lookup_at_many_moments_in_several_tags_and_at_a_time(browser, api, tag, build):
    build.iov(build.list(build.tag("patch"), "Gain"), (3, 0), (4, 0), url="patch")
    before = quote(GlobalTagChange.objects.filter(global_tag="tag").latest("number").created.isoformat())
    insert(api, "later", [7, 0])

    def rows(query):
        found = cells_of(browser.get(f"/?{query}").split("<h2>Global tags")[0])
        return [[cell.removesuffix(" Why?") for cell in row[1:]] for row in found]

    moments = "&moments=2,0%0D%0A3,5;9,0"
    assert rows(f"tag=tag{moments}") == [
        ["first", "1, 0", "7, 0", "valid", "2, 03, 5"],
        ["later", "7, 0", "open", "valid", "9, 0"],
    ]
    assert rows(f"tag=patch&base=tag{moments}&base=") == [
        ["tag", "first", "1, 0", "3, 0 stored: 7, 0", "valid", "2, 0"],
        ["patch", "patch", "3, 0", "4, 0", "valid", "3, 5"],
        ["tag", "later", "7, 0", "open", "valid", "9, 0"],
    ]
    assert [row[:4] for row in rows(f"tag=tag&major=9&at={before}")] == [["first", "1, 0", "open", "valid"]]
    assert rows("tag=patch&major=5") == [["patch", "3, 0", "4, 0", "ended"]]
    assert "There is no valid payload" in browser.get("/?tag=patch&major=5&strict=1")
    assert "must not be given together" in browser.get(f"/?tag=tag&major=5&rev=1&at={before}", 400)


def test_a_manager_asks_the_compiler_for_the_lists_of_a_tag(browser, api, tag, compiled_tags, settings):
    settings.CDB_COMPILED_BYTES = 2**30
    path = "/tags/tag/compiled"
    page = ServiceClient(headers={"Accept": "text/html"})
    assert "0 of 1 payload lists" in browser.get(path)
    settings.CDB_OPEN_WRITES = False
    assert "Compile the others" not in browser.get(path) and page.post(path).status_code == 401
    settings.CDB_OPEN_WRITES = True
    assert "The compiler was asked" in page.post(path).content.decode()
    Maintenance().step()
    assert "1 of 1 payload lists" in browser.get(path)


def test_the_affected_moments_of_two_tags(browser, api, tag, monkeypatch):
    revision = api.get("globalTag/tag?light").headers["CDB-Revision"]
    insert(api, "later", [7, 0])
    path = f"/affected?a=tag&rev_a={revision}"
    assert re.search(r"In 1 interval, .*<li>7, 0 \u2013 open</li>", browser.get(path), re.DOTALL)
    moments = browser.get(f"{path}&moments=6,9;7,0%0A8")
    assert "2 of 3 moments affected" in moments and cells_of(moments) == [["Gain", "7, 08, 0"]]
    # A page with much to compare is there at once, and asks for its result.
    monkeypatch.setattr(compare, "ROWS_PER_SECOND", 0.1)
    page = browser.get(path)
    assert "aria-busy" in page and "<li>7, 0" not in page
    part = browser.get("/affected" + unescape(re.search(r'hx-get="([^"]*)"', page)[1]), **{"HX-Request": "true"})
    assert "<li>7, 0" in part and "<html" not in part


def test_the_pages_of_a_payload_list_lead_to_each_other(browser, build, settings):
    settings.CDB_MAJOR_NAME = "run"
    gain = build.list(build.tag("tag", "locked"), "Gain")
    for major in range(1, 251):
        build.iov(gain, (major, 0), size=2_500_000 if major == 1 else 0)

    def starts(query):
        page = browser.get(f"/tags/tag/lists/Gain{unescape(query)}")
        links = {text: link for link, text in re.findall(r'href="(\?[^"]*)">([^<]*)</a>', page)}
        return [row[0] for row in cells_of(page) if row[0] != "0, 0"], links, page

    first, links, page = starts("")
    assert first == [f"{major}, 0" for major in range(1, 101)] and "← Previous IOVs" not in links
    assert "2.4\xa0MB" in page and ">\u2013<" in page and "badge locked" in page and 'placeholder="run,minor"' in page
    assert 'name="at" value="" placeholder="run,minor"' in browser.get("/tags/tag")
    last, links, _ = starts(links["Last"])
    assert last == [f"{major}, 0" for major in range(151, 251)] and "Next IOVs →" not in links
    middle, links, _ = starts(links["← Previous IOVs"])
    assert middle == [f"{major}, 0" for major in range(51, 151)]
    assert starts(links["Next IOVs →"])[0] == last and starts(links["← Previous IOVs"])[0][:50] == first[:50]


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
    # Nor does the response to a form show anything.
    for path in ("/tags/tag/insert", "/tags/tag/manage", "/tags/tag/undo/2", "/types/Gain", "/detached", "/statuses"):
        response = ServiceClient(headers={"Accept": "text/html"}).post(path, {"action": "describe", "kind": "clear"})
        assert response.status_code == 401 and "Please log in" in response.content.decode(), path


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
        rows = re.findall(r"<td[^>]*>(\d+, \d+|open)</td>", browser.get(f"/tags/tag/lists/Gain?x=1{rev}"))
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
