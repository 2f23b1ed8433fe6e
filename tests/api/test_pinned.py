"""Pinned addresses: the responses of requests with `rev` or `at`."""

from urllib.parse import quote

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse

from cdb_rest.models import GlobalTagChange
from cdb_rest.routes import ROUTES
from cdb_rest.wsgi.pinned import Pinned
from cdb_rest.wsgi.refusals import ReadAccess
from cdb_rest.wsgi.shortcut import Shortcut
from tests.api.helpers import LOOKUP, MOMENT_OF_LOOKUP, insert
from tests.api.test_past import FOREVER, change_everything, past, time_of
from tests.conftest import PREFIX, Api, ServiceClient

pytestmark = pytest.mark.django_db(transaction=True)
STATES = [
    LOOKUP,
    f"payload-iovs/query?{MOMENT_OF_LOOKUP}&strict=1&shape=dict&window=1",
    "globalTag/tag",
    "global-tags/tag/?light=1",
    "global-tags/tag/payload-lists",
    "payload-iovs/starts/?gtName=tag&startMajorIOV=0&startMinorIOV=0&endMajorIOV=-1&endMinorIOV=-1",
    "payload-iovs/range?gtName=tag",
    f"payload-iovs/explain?{MOMENT_OF_LOOKUP}",
    "global-tags/tag/export?format=jsonl",
    "global-tags/tag/coverage/",
]
PRESENT = ["pt", "payload-types/?page=1", "gtstatus/", "global-tags/statuses", "user_settings/CDB_IOV_MODE"]


class Stack(ServiceClient):
    """Django's test client behind the WSGI applications of the service."""

    def request(self, **request):
        django, said = WSGIHandler(), []
        application = Pinned(ReadAccess(Shortcut(django), refuse=django), refuse=django)
        pieces = application(self._base_environ(**request), lambda line, headers: said.append((line, dict(headers))))
        content = b"".join(pieces)
        getattr(pieces, "close", lambda: None)()
        [(line, headers)] = said
        response = HttpResponse(content, status=int(line[:3]), headers=headers)
        if "Content-Type" not in headers:
            del response["Content-Type"]
        return response


@pytest.fixture
def stack():
    return Api(Stack())


@pytest.mark.parametrize("path", STATES)
def test_a_pinned_response_is_that_with_rev_or_at(api, stack, tag, path):
    moment = time_of(2)
    change_everything(api)
    for state, query in (("2", "rev=2"), (moment, f"at={moment}")):
        for method in ("GET", "HEAD"):
            found, expected = (stack(method, one) for one in (f"/pin/tag@{state}{PREFIX}{path}", past(path, query)))
            # All but the time it took.
            assert found.headers.pop("Server-Timing") and expected.headers.pop("Server-Timing")
            assert (found.status, found.headers, found.content) == (200, expected.headers, expected.content)
    api.put("gt_change_status/tag/unlocked").ok()
    api.delete("deleteGlobalTag/tag").ok()
    assert stack.get(f"/pin/tag@2{PREFIX}{path}").status == 200


@pytest.mark.parametrize("path", ["globalTags", "globalTags/", "global-tags", "global-tags/"])
def test_the_list_has_the_pinned_tag_only(api, stack, tag, build, path):
    item = api.get("globalTag/tag?light").json
    build.tag("other")
    insert(api, "second", [3, 0])
    found, head = (stack(method, f"/pin/tag@2{PREFIX}{path}") for method in ("GET", "HEAD"))
    assert found.ok() == [item]
    assert found.headers["Cache-Control"] == FOREVER and found.headers["CDB-Revision"] == "2"
    assert head.headers["Content-Length"] == found.headers["Content-Length"] == str(len(found.content))
    again = stack.get(f"/pin/tag@2{PREFIX}{path}", **{"If-None-Match": found.headers["ETag"]})
    assert (again.status, again.content) == (304, b"")


@pytest.mark.parametrize("path", PRESENT)
def test_what_does_not_belong_to_a_tag_is_the_present(api, stack, tag, path):
    change_everything(api)
    expected = stack.get(path)
    found = stack.get(f"/pin/tag@2{PREFIX}{path}", **{"If-None-Match": "*"})
    assert found.ok() == expected.ok()
    assert found.headers["Cache-Control"] == "no-store"
    assert not {"ETag", "Last-Modified", "X-Accel-Expires"} & set(found.headers)


@pytest.mark.parametrize(
    ("state", "path", "status", "code", "detail"),
    [
        ("tag@2", LOOKUP.replace("=tag", "=other"), 404, "not_pinned", "pinned to global tag 'tag'"),
        ("tag@2", f"{LOOKUP}&gtName=other", 404, "not_pinned", "and serves no other"),
        ("tag@2", "global-tags/tag/coverage?base=other", 404, "not_pinned", "pinned to global tag 'tag'"),
        ("tag@2", "globalTag/other", 404, "not_pinned", "pinned to global tag 'tag'"),
        ("tag@2", f"{LOOKUP}&rev=2", 400, "invalid_input", "rev"),
        ("tag@2", f"{LOOKUP}&%61t=2026-01-01", 400, "invalid_input", "at"),
        ("tag@2", "globalTags?page=1", 400, "invalid_input", "page"),
        ("tag@9", LOOKUP, 404, "revision_not_found", "has the revisions 1 ("),
        ("tag@2999-01-01", "globalTags", 404, "revision_not_found", "has the revisions 1 ("),
        ("tag@1", "globalTags", 410, "revision_pruned", "no longer stored"),
        ("%FF@1", "globalTags", 404, "not_pinned", "no pinned address"),
        ("missing@1", "globalTags", 404, "global_tag_not_found", "missing"),
        ("tag@yesterday", "pt", 400, "invalid_input", "neither a revision nor a time"),
        ("tag@99999999999999999999", LOOKUP, 400, "invalid_input", "neither a revision nor a time"),
        ("tag", LOOKUP, 404, "not_pinned", "/pin/<tag>@<revision>/"),
    ],
)
def test_refusals(stack, tag, state, path, status, code, detail):
    GlobalTagChange.objects.filter(revision=1).update(has_history=False)
    check_refused(stack, state, path, status, code, detail)


def test_other_routes_are_not_pinned(stack, tag):
    for path in ["", *(path for route in ROUTES for path in route.paths if not route.pin)]:
        check_refused(stack, "tag@2", path.replace("<str:name>", "tag"), 404, "not_pinned", "which serves payloadiovs/")


def check_refused(stack, state, path, status, code, detail):
    found = stack.get(f"/pin/{state}{PREFIX}{path}")
    assert detail in found.error(status, code)["detail"]
    assert found.headers["Cache-Control"] == "no-store"
    # A browser gets the same.
    assert stack.get(f"/pin/{state}{PREFIX}{path}", Accept="text/html").json == found.json


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_writes_are_refused(stack, tag, method):
    for path in (LOOKUP, "globalTags", "gt", "pt", "deleteGlobalTag/tag", "nothing"):
        found = stack(method, f"/pin/tag@2{PREFIX}{path}", {"name": "new", "status": "unlocked"})
        found.error(405, "pinned_address")
        assert found.headers["Allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("name", ["old@tag", "a b+c", "Ösel", "50%", "a?b#c", "@"])
def test_names_of_existing_tags(api, stack, tag, name):
    GlobalTagChange.objects.update(global_tag=name)
    type(tag).objects.update(name=name)
    base = f"/pin/{quote(name, safe='@')}@2{PREFIX}"
    assert [item["name"] for item in stack.get(f"{base}globalTags").ok()] == [name]
    assert stack.get(f"{base}gtPayloadLists/{quote(name)}").ok()
    assert stack.get(f"{base}payloadiovs/?gtName={quote(name)}&majorIOV=5&minorIOV=0").ok()[0][1] == "first"


@pytest.mark.parametrize("path", [LOOKUP, "globalTags", "pt"])
def test_closed_reads_are_closed_here_too(stack, tag, closed, login, settings, path):
    settings.CDB_ANONYMOUS_READS = False
    stack.get(f"/pin/tag@2{PREFIX}{path}").error(401, "authentication_required")
    found = stack.get(f"/pin/tag@2{PREFIX}{path}", **login("reader"))
    assert found.ok() and "public" not in found.headers["Cache-Control"]
