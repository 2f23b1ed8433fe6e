"""Each difference from nopayloaddb that a client could notice, and what the service does: the rows of docs/nopayloaddb.md."""

import re
from typing import Any, NamedTuple

import pytest
from django.test import Client

from cdb.env import ROOT
from cdb_rest.models import GlobalTag
from cdb_rest.rules.moment import OPEN
from tests.api.helpers import IOV, TIME, rename
from tests.conftest import PREFIX


class Step(NamedTuple):
    """A request, as a method and a path, and the response to it.

    `document` is compared by `matches`. A `body` of bytes is sent as it is. `sent` and `headers` are headers of the request and
    of the response. Texts may have the names of `world` in braces.
    """

    request: str
    status: int = 200
    document: Any = object
    body: Any = None
    sent: dict[str, str] = {}
    headers: dict[str, Any] = {}


class Row(NamedTuple):
    """A row of the documentation by its first cell, settings of the service, and requests in this order."""

    title: str
    steps: list[Step]
    settings: dict[str, Any] = {}


def refused(request, status, code, body=None, /, **more):
    """A request that gets an error, and further members of the error."""
    return Step(request, status, {"detail": str, "code": code} | more, body)


LOOKUP = "GET payloadiovs/?gtName=tag&majorIOV={}&minorIOV=0"
IOV_BODY = {"payload_url": "u", "checksum": "", "major_iov": 1, "minor_iov": 0}
BULK = IOV_BODY | {"payload_list": "Gain free"}
FIRST = ["Gain", "a", "abc", 1, 1, 0, 5, 0, None]
NOISE = ["Noise", "n", "abc", 1, 0, 0, OPEN, OPEN, None]
DOCUMENT = dict.fromkeys(IOV, object) | {
    "payload_url": "a",
    "payload_list": "Gain tag",
    "comb_iov": "1.0000000000000000000",
}
RANGE = "payloadiovsrange/?gtName=tag&startMajorIOV=0&startMinorIOV=1&endMajorIOV=5&endMinorIOV=-1"

EVERYWHERE = [
    Row("unknown object, wrong state, bad interval", [
        refused("GET globalTag/none", 404, "global_tag_not_found"),
        refused("POST pl", 404, "payload_type_not_found", {"payload_type": "None"}),
        refused("PUT gt_change_status/tag/none", 404, "status_not_found"),
        refused("PUT pl_attach", 404, "payload_list_not_found", {"global_tag": "tag", "payload_list": "none"}),
        refused("PUT piov_attach", 404, "payload_iov_not_found", {"payload_list": "Gain tag", "piov_id": 0}),
        refused("DELETE deleteGlobalTag/locked", 409, "global_tag_locked"),
        refused("POST piov", 400, "invalid_input", IOV_BODY | {"major_iov_end": 0, "minor_iov_end": 0}),
        *(refused("POST gt", 400, "invalid_input", body) for body in (b"null", b"[]", {}, {"name": 5})),
        refused("POST piov", 400, "invalid_input", IOV_BODY | {"major_iov": None}),
    ]),
    Row("error responses", [
        refused("POST pt", 400, "name_taken", {"name": "Gain"}, name=[str]),
        refused("POST gt", 400, "invalid_input", {}, name=[str], status=[str]),
        refused("POST bulk_piov", 404, "payload_list_not_found", [BULK, BULK | {"payload_list": "none"}], rows=[{"row": 1}]),
    ]),
    Row("unknown path", [refused("GET nothing", 404, "route_not_found")]),
    Row("trailing slash", [
        Step(f"GET {path}{slash}{query}")
        for path, query in (
            ("payloadiovs", "?gtName=tag&majorIOV=1&minorIOV=0"), ("globalTags", ""), ("user_settings/CDB_IOV_MODE", ""),
        )
        for slash in ("", "/")
    ]),
    Row("method PATCH", [
        refused(f"PATCH {path}", 405, "method_not_allowed", {})
        for path in ("pl_attach", "piov_attach", "gt_change_status/tag/locked")
    ]),
    Row("`Accept`, `?format=`", [
        Step("GET pt?format=api", sent={"Accept": "text/html"}, headers={"Content-Type": "application/json"}),
        Step("GET pt?format=xml", sent={"Accept": "application/xml"}),
    ]),
    Row("form as a body", [
        Step(f"POST {path}", 415, {"detail": re.compile(".*Content-Type: application/json.*")}, b"name=a", {"content_type": kind})
        for path in ("pt", "gt", "gtstatus")
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
    ]),
    # tests/e2e/test_nginx.py has the requests through nginx.
    Row("chunked body", [Step("POST pt", 411, {"code": "length_required"}, b"", {"Transfer-Encoding": "chunked"})]),
    Row("large body", [refused("POST pt", 413, "body_too_large", b" " * 101)], {"CDB_MAX_BODY_BYTES": 100}),
    Row("times", [Step("GET pt", 200, [{"created": TIME}] * 2)]),
    Row("caching", [
        Step(LOOKUP.format(1), headers={"ETag": str, "Cache-Control": str}),
        Step("GET globalTags", headers={"ETag": str}),
    ]),
    Row("order of lists and rows", [
        Step(LOOKUP.format(1), 200, [FIRST, NOISE]),
        Step("GET globalTags", 200, [{"name": name} for name in ("tag", "locked", "frozen", "Empty")]),
        Step("GET pl", 200, [{"name": name} for name in ("Noise tag", "Gain tag", "Gain locked", "Gain frozen", "Gain free")]),
        Step("GET globalTag/tag", 200, {"payload_lists": [object, {"payload_iov": [{"major_iov": 1}, {"major_iov": 5}]}]}),
    ]),
    Row("parameter given twice", [
        refused("GET pt?page=1&page=2", 400, "invalid_input", page=[str]),
        refused(f"{LOOKUP.format(1)}&minorIOV=1", 400, "invalid_input"),
        Step(f"{LOOKUP.format(1)}&gtName=locked", 200, [FIRST, NOISE]),
    ]),
    Row("unknown members of a body", [
        *(Step(f"POST {path}", 200, object, {"name": path.upper(), "nme": 1}) for path in ("pt", "payload-types")),
        Step("POST payload-iovs", 200, {"major_iov_end": OPEN}, IOV_BODY | {"major_iov_ends": 2}),
        Step("POST payload-iovs/bulk", 200, {"count": 1}, [BULK | {"note": ""}]),
        Step("PUT payload-lists/attach", 200, object, {"global_tag": "Empty", "payload_list": "Gain free", "x": 1}),
        refused("POST payload-iovs/bulk", 400, "invalid_input", [BULK | {"dryrun": 1}], rows=[{"row": 0, "dryrun": [str]}]),
        refused("POST payload-types", 400, "invalid_input", {"name": "New", "rev": 1}, rev=[str]),
        refused("POST payload-iovs/insert", 400, "invalid_input", {"note": 1}, note=[str]),
    ]),
    Row("names of new objects", [
        refused("POST pt", 400, "invalid_input", {"name": name}, name=[str]) for name in ("a/b", "a\tb", "..", "clone", " ", "é")
    ]),
    Row("no author, no description", [
        Step("POST gt", 200, {"author": ""}, {"name": "new", "status": "unlocked"}),
        Step("GET globalTag/new", 200, {"author": "", "status": {"description": str}}),
    ]),
    Row("writes without a valid token", [
        refused("POST pt", 401, "authentication_required", {"name": "new"}),
        Step("POST pt", 401, {"code": "invalid_token"}, {"name": "new"}, {"Authorization": "Bearer  x y"}),
        Step("POST bulk_piov", 403, {"code": "not_permitted"}, [BULK], {"Authorization": "{reader}"}),
    ], {"CDB_OPEN_WRITES": False}),
    Row("white space in JSON", [Step(LOOKUP.format(1), 200, re.compile(r'\[\["Gain", "a", "abc", 1, 1, .*'))]),
]  # fmt: skip
ROUTES = [
    Row("`payloadiovs/`", [
        refused("GET payloadiovs/?gtName=none&majorIOV=0&minorIOV=0", 404, "global_tag_not_found"),
        refused("GET payloadiovs/?majorIOV=0&minorIOV=0", 400, "invalid_input"),
        refused("GET payloadiovs/?gtName=tag&majorIOV=1", 400, "invalid_input"),
        *(refused(LOOKUP.format(number), 400, "invalid_input") for number in ("1.5", "x", "", "-1", "1e1", "%202", "9" * 20)),
        Step(f"{LOOKUP.format(1)}&shape=dict&unknown=1", 200, [{"size": 1, "revision": None}, object]),
        Step("POST payloadiovs/", 200, [{"rows": [FIRST, NOISE]}], {"gtName": "tag", "moments": [[1, 0]]}),
    ]),
    Row("`payloadiovsrange/`, `payloadiovs_orm_max/`, `payloadiovs_orm_orderby/`", [
        *(Step(f"GET payloadiovs_orm_{name}/?gtName=tag&majorIOV=4&minorIOV=0", 200, [{"payload_url": "n"}, DOCUMENT])
          for name in ("max", "orderby")),
        Step("GET payloadiovs_orm_max?gtName=Empty&majorIOV=4&minorIOV=0", 200, []),
        refused("GET payloadiovs_orm_max/?gtName=none&majorIOV=4&minorIOV=0", 404, "global_tag_not_found"),
        refused("GET payloadiovs_orm_max/?gtName=tag&majorIOV=4", 400, "invalid_input"),
        # Their starts have the minor number 0, which is less than that of the range.
        Step(f"GET {RANGE}", 200, [{"payload_type": "Gain", "payload_iov": [{"major_iov": 1}, {"major_iov": 5}]}]),
    ]),
    Row("`timeout`", [refused("GET timeout", 404, "route_not_found")]),
    Row("`web/`", [Step("GET web/", 302, headers={"Location": "/"})]),
    Row("`globalTags`", [
        Step("GET globalTags", 200, [{"revision": 0, "payload_lists_count": 2, "payload_iov_count": 3}, object, object, object]),
    ]),
    Row("`globalTag/<name>?light`", [
        Step(f"GET {path}/tag?light{value}", 200, {"status": "unlocked", "payload_iov_count": 3})
        for path in ("globalTag", "global-tags") for value in ("", "=", "=0", "=1", "=false", "=%30", "=no&x=y")
    ]),
    Row("`globalTag/<name>`", [
        Step("GET globalTag/tag", 200, {
            "status": {"description": str}, "closed_until": None, "largest_major": None,
            "payload_lists": [object, {"payload_iov": [DOCUMENT, {"size": 1, "revision": None}]}],
        }),
    ]),
    Row("`gt?page=`", [Step("GET gt?page=1", 200, {"count": 4}), Step("GET gt", 200, [{"payload_lists": list}] * 4)]),
    Row("ids in paths", [
        refused(f"GET {path}/{number}", 400, "invalid_input") for path in ("gt", "pl", "piov") for number in ("x", "-1")
    ]),
    Row("POST `gt`", [
        refused("POST gt", 400, "invalid_input", {"name": "new"}, status=[str]),
        refused("POST gt", 404, "status_not_found", {"name": "new", "status": "none"}),
        Step("POST gt", 200, {"author": ""}, {"name": "new", "status": "unlocked", "author": "", "description": "of June"}),
        Step("GET globalTags?page=1&search=JUNE", 200, {"results": [{"name": "new"}]}),
    ]),
    Row("POST `global-tags`", [Step("POST global-tags", 200, {"name": "new"}, {"name": "new", "status": "unlocked"})]),
    Row("`deleteGlobalTag`", [
        refused("DELETE deleteGlobalTag/locked", 409, "global_tag_locked"),
        refused("DELETE deleteGlobalTag/frozen", 409, "global_tag_frozen"),
        refused("DELETE deleteGlobalTag/none", 404, "global_tag_not_found"),
    ]),
    Row("`cloneGlobalTag`", [
        refused("POST cloneGlobalTag/none/new", 404, "global_tag_not_found", b"null"),
        Step("POST cloneGlobalTag/tag/new", 200, {"author": "127.0.0.1", "status": "unlocked", "payload_iov_count": 3}, b"null"),
        Step("GET payloadiovs/?gtName=new&majorIOV=1&minorIOV=0", 200, [FIRST, NOISE]),
        Step("POST cloneGlobalTag/tag/newer", 200, {"author": ""}, {"author": ""}),
    ]),
    Row("`gt_change_status`", [
        Step("PUT gt_change_status/tag/locked", 200, {"status": "locked"}),
        Step("POST gtstatus", 200, {"name": "test"}, {"name": "test"}),
        refused("PUT gt_change_status/tag/test", 409, "status_change_refused"),
        Step("PUT gt_change_status/tag/unlocked"),
        Step("PUT gt_change_status/tag/test"),
        refused("PUT pl_attach", 409, "global_tag_locked", {"global_tag": "tag", "payload_list": "Gain free"}),
        refused("PUT gt_change_status/frozen/unlocked", 409, "global_tag_frozen"),
        refused("PUT gt_change_status/tag/none", 404, "status_not_found"),
    ]),
    Row("`gtPayloadLists`", [
        Step("GET gtPayloadLists/tag", 200, {"Gain": "Gain tag", "Noise": "Noise tag"}),
        refused("GET gtPayloadLists/none", 404, "global_tag_not_found"),
    ]),
    Row("POST `gtstatus`, `pt`", [
        Step("POST pt", 200, {"name": "Time"}, {"name": "Time", "description": "of flight"}),
        Step("GET pt?page=1&search=flight", 200, {"results": [{"name": "Time"}]}),
        refused("POST gtstatus", 400, "invalid_input", {"name": "Locked"}),
    ]),
    Row("`deletePayloadType`, `deletePayloadList`", [
        refused("DELETE deletePayloadType/Gain", 409, "payload_type_in_use"),
        refused("DELETE deletePayloadType/None", 404, "payload_type_not_found"),
        refused("DELETE deletePayloadList/Gain%20tag", 409, "payload_list_not_empty"),
        refused("DELETE deletePayloadList/Gain%20frozen", 409, "global_tag_frozen"),
        refused("DELETE deletePayloadList/none", 404, "payload_list_not_found"),
    ]),
    Row("POST `pl`", [
        refused("POST pl", 404, "payload_type_not_found", {"payload_type": "None"}),
        refused("POST pl", 400, "invalid_input", {}, payload_type=[str]),
    ]),
    Row("`pl/<id>`", [
        Step(f"GET {path}/{{gain}}", 200, {"global_tag": "tag", "payload_type": "Gain", "payload_iov": [DOCUMENT, object]})
        for path in ("pl", "payload-lists")
    ]),
    Row("`payload-lists/by-name`", [Step("GET payload-lists/by-name/Gain%20tag", 200, {"created": TIME, "iov_count": 2})]),
    Row("`pl_attach`", [
        refused("PUT pl_attach", 409, "global_tag_locked", {"global_tag": "Empty", "payload_list": "Gain locked"}),
        refused("PUT pl_attach", 409, "global_tag_locked", {"global_tag": "locked", "payload_list": "Gain free"}),
        refused("PUT pl_attach", 409, "global_tag_frozen", {"global_tag": "frozen", "payload_list": "Noise tag"}),
        refused("PUT pl_attach", 404, "payload_list_not_found", {"global_tag": "tag", "payload_list": "none"}),
        refused("PUT pl_attach", 404, "global_tag_not_found", {"global_tag": "none", "payload_list": "Gain free"}),
        *[Step("PUT pl_attach", 200, {"global_tag": "tag"}, {"global_tag": "tag", "payload_list": "Gain free"})] * 2,
    ]),
    Row("POST `piov`", [
        Step("POST piov", 200, {"checksum": "", "size": 7, "revision": "12"}, IOV_BODY | {"size": 7, "revision": "12"}),
        refused("POST piov", 400, "invalid_input", IOV_BODY | {"minor_iov": -1}, minor_iov=[str]),
        refused("POST piov", 400, "invalid_input", IOV_BODY | {"major_iov_end": 1, "minor_iov_end": 0}),
    ]),
    Row("`piov_attach`", [
        *(Step("PUT piov_attach", 200, {"trimmed": rest, "detached": [], "unchanged": unchanged},
               {"payload_list": "Gain tag", "piov_id": "{loose}"})
          for rest, unchanged in (([{"payload_url": "b", "after": [{"since": [5, 0], "until": [7, 0]}]}], False), ([], True))),
        # As sPHENIX's client extends a locked tag: each end is (0, 2^63-1).
        *[Step("PUT piov_attach", 200, {"major_iov_end": 0}, {"payload_list": "Gain locked", "piov_id": "{next}"})] * 2,
        Step("GET payloadiovs/?gtName=locked&majorIOV=0&minorIOV=15", 200, [["Gain", "l", "abc", 1, 0, 10, 0, 20, None]]),
        Step("GET payloadiovs/?gtName=locked&majorIOV=0&minorIOV=20", 200, [["Gain", "next", "abc", 1, 0, 20, 0, OPEN, None]]),
        refused("PUT piov_attach", 409, "iov_overlap", {"payload_list": "Gain locked", "piov_id": "{again}"}),
        refused("PUT piov_attach", 409, "global_tag_frozen", {"payload_list": "Gain frozen", "piov_id": "{again}"}),
    ]),
    Row("`bulk_piov`", [
        Step("POST bulk_piov", 200, {"count": 1}, [BULK | {"major_iov_end": 2, "minor_iov_end": 0, "size": 5, "checksum": "c"}]),
        Step("GET pl/{free}", 200, {"payload_iov": [{"major_iov_end": 2, "size": 5, "checksum": "c"}]}),
        refused("POST bulk_piov", 409, "iov_overlap", [BULK | {"payload_url": "other"}], rows=[{"row": 0}]),
        refused("POST bulk_piov", 400, "invalid_input", [BULK | {"minor_iov": "x"}], rows=[{"row": 0}]),
        refused("POST bulk_piov", 404, "payload_list_not_found", [BULK | {"payload_list": "none"}], rows=[{"row": 0}]),
        refused("POST bulk_piov", 409, "global_tag_frozen", [BULK | {"payload_list": "Gain frozen"}], rows=[{"row": 0}]),
    ]),
    Row("`deletePayloadIOV`", [
        refused(f"DELETE deletePayloadIOV/locked/Gain/0/10/0/{OPEN}", 409, "global_tag_locked"),
        refused("DELETE deletePayloadIOV/tag/Gain/8/0", 404, "payload_iov_not_found"),
        refused("DELETE deletePayloadIOV/tag/Gain/x/0", 400, "invalid_input"),
        Step("DELETE deletePayloadIOV/tag/Gain/5/0", 200, {"detail": str}),
    ]),
    Row("`user_settings`", [
        Step("GET user_settings/CDB_PAYLOAD_BASE_URL", 200, {"CDB_PAYLOAD_BASE_URL": ""}),
        refused("GET user_settings/CDB_SECRET_KEY", 404, "setting_not_found"),
    ]),
    Row("`admin/`", [Step("GET /admin/", 302, headers={"Location": re.compile("/admin/login/.*")})]),
]  # fmt: skip
PAGES = [
    Row("`page` that is no number, empty or below 1", [
        Step(f"GET pt?page={page}", 200, {"page": 1, "results": [object, object]}) for page in ("x", "", "0", "-3", "1.5", "%201")
    ]),
    Row("`page` beyond 64 bits", [Step(f"GET pt?page={2**63}", 200, {"page": OPEN, "count": 2, "results": []})]),
    Row("`page_size`", [
        Step(f"GET pt?page=1&page_size={given}", 200, {"page_size": used})
        for given, used in (("0", 1), ("-5", 1), ("7", 7), ("1001", 1000), (str(2**70), 1000), ("x", 25), ("", 25))
    ]),
    Row("`total_pages` of an empty list", [
        Step("GET piov?page=1&search=none", 200, {"count": 0, "total_pages": 1, "results": []}),
    ]),
    Row("`search`", [
        *(Step(f"GET {path}?page=1&search={text}", 200, {"results": [{key: name} for name in names]})
          for path, text, key, names in (
              ("globalTags", "+TAG%20", "name", ["tag"]),
              ("globalTags", "%20+", "name", ["Empty", "frozen", "locked", "tag"]),
              ("globalTags", "unwritten", "name", ["Empty"]),
              ("pt", "OI", "name", ["Noise"]),
              ("pl", "frozen", "global_tag", ["frozen"]),
              ("pl", "noise", "payload_type", ["Noise"]),
              ("piov", "ain+TAG", "payload_url", ["a", "b"]),
              ("piov", "BI", "payload_url", ["big"]),
              ("globalTags", "%25", "name", []),
          )),
        # The lists of a clone share their rows.
        Step("POST cloneGlobalTag/frozen/copy", 200, object, b"null"),
        Step("GET piov?page=1&search=Gain_", 200, {"results": [{"payload_url": "f", "global_tag": "copy"}]}),
    ]),
    Row("order", [
        Step("GET globalTags?page=1", 200, {"results": [{"name": name} for name in ("Empty", "frozen", "locked", "tag")]}),
        Step("GET globalTags?page=1&order=desc&sort=secret", 200, {"results": [{"name": "tag"}, object, object, object]}),
        Step("GET pt?page=1", 200, {"results": [{"name": "Gain"}, {"name": "Noise"}]}),
        Step("GET pl?page=1&page_size=2", 200, {"results": [{"name": "Gain free"}, {"name": "Gain frozen"}]}),
        Step("GET piov?page=1&page_size=2", 200, {"results": [{"payload_url": "n"}, {"payload_url": "a"}]}),
        Step("GET globalTags?page=1&sort=id", 200, {"results": [{"name": "tag"}, object, object, object]}),
    ]),
    Row("`sort` of IOVs", [
        Step(f"GET piov?page=1&page_size=2&sort={field}&order={order}", 200, {"results": [{"payload_url": url} for url in urls]})
        for field, order, urls in (
            ("payload_url", "", ("a", "again")), ("checksum", "desc", ("big", "loose")), ("size", "desc", ("big", "loose")),
            ("major_iov", "desc", ("loose", "b")), ("comb_iov", "desc", ("loose", "b")), ("minor_iov", "desc", ("again", "next")),
            ("major_iov_end", "asc", ("l", "next")), ("minor_iov_end", "asc", ("a", "big")),
            ("payload_list", "asc", "fl"), ("global_tag", "asc", "fl"), ("payload_type", "desc", ("loose", "again")),
            ("inserted", "", "na"),
        )
    ]),
    Row("rows of IOVs", [
        Step("GET payload-iovs?page=1&payload_list=Gain%20tag", 200,
             {"results": [DOCUMENT | {"global_tag": "tag", "payload_type": "Gain", "size": 1, "revision": None}, object]}),
        Step("GET piov?page=1&search=loose", 200, {"results": [{"global_tag": None, "payload_type": None}]}),
    ]),
]  # fmt: skip


STATUSES = {"tag": "unlocked", "locked": "locked", "frozen": "frozen", "Empty": "unlocked"}


@pytest.fixture
def world(build, login):
    """Names in the steps: an unlocked tag with two lists, protected tags, an empty one, and detached lists and IOVs."""
    tags = [build.tag(name, status) for name, status in STATUSES.items()]
    GlobalTag.objects.filter(name="Empty").update(description="unwritten")
    noise = rename(build.list(tags[0], "Noise"), "Noise tag")
    gain, of_locked, of_frozen = (rename(build.list(tag), f"Gain {tag.name}") for tag in tags[:3])
    to_the_end = (0, OPEN)
    build.iov(noise, (0, 0), url="n")
    build.iov(gain, (1, 0), (5, 0), url="a")
    build.iov(gain, (5, 0), url="b")
    build.iov(of_locked, (0, 10), to_the_end, url="l")
    build.iov(of_frozen, (1, 0), url="f")
    build.iov(None, (2, 0), (3, 0), url="big", checksum="z", size=100)
    detached = {url: build.iov(None, (0, 20), to_the_end, url=url).id for url in ("next", "again")}
    return detached | {
        "loose": build.iov(None, (7, 0), url="loose").id,
        "gain": gain.id,
        "free": rename(build.list(), "Gain free").id,
        "reader": login("reader")["Authorization"],
    }


def matches(found, expected):
    """Whether a response has what is expected: of objects these members, of arrays exactly these elements."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            name in found and matches(found[name], expected[name]) for name in expected
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(matches, found, expected))
    if isinstance(expected, re.Pattern):
        return bool(expected.fullmatch(found))
    return isinstance(found, expected) if isinstance(expected, type) else found == expected


def filled(value, world):
    """A value with the names of `world` replaced in its texts."""
    if isinstance(value, dict):
        return {name: filled(item, world) for name, item in value.items()}
    return value.format(**world) if isinstance(value, str) else value


def check(api, world, step):
    """Send a request, and compare the response with the step."""
    method, _, path = step.request.format(**world).partition(" ")
    if step.status == 302:
        answer = Client().generic(method, path if path.startswith("/") else PREFIX + path)
        assert (answer.status_code, matches(dict(answer.items()), step.headers)) == (302, True), dict(answer.items())
        return
    is_raw = isinstance(step.body, bytes)
    body = {"raw": step.body} if is_raw else {"body": filled(step.body, world)}
    answer = api(method, path, **body, **filled(step.sent, world))
    found = answer.content.decode() if isinstance(step.document, re.Pattern) else answer.json
    assert answer.status == step.status, (step, answer.json)
    assert matches(found, step.document) and matches(answer.headers, step.headers), (step, found, answer.headers)


ROWS = {row.title: row for row in (*EVERYWHERE, *ROUTES, *PAGES)}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("title", ROWS)
def test_the_difference_is_as_documented(api, world, settings, title):
    for name, value in ROWS[title].settings.items():
        setattr(settings, name, value)
    for step in ROWS[title].steps:
        check(api, world, step)


def test_the_documentation_has_these_rows():
    text = (ROOT / "docs" / "nopayloaddb.md").read_text()
    cells = re.findall(r"^\| ([^|]*?) \|", text.partition("## What is different")[2], re.MULTILINE)
    assert [cell for cell in cells if cell] == list(ROWS)
