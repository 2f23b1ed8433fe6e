"""Security headers on all responses, and the limit on attempts to log in."""

import json
import re

import pytest

from cdb_rest.http.security import HEADERS, PAGE_HEADERS, POLICY
from cdb_web.page import PAGE_POLICY
from tests.e2e.clients import Browser

PASSWORD = "correct horse battery"
LOOKUP = "/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
DATA = [
    LOOKUP,
    LOOKUP + "&shape=dict",
    "/api/cdb_rest/payloadiovs/?gtName=missing&majorIOV=5&minorIOV=0",
    "/api/cdb_rest/globalTags",
    "/api/cdb_rest/globalTag/tiny",
    "/api/cdb_rest/global-tags/tiny/export",
    "/health/live",
    "/health/ready",
    "/nothing",
    "/api/schema/",
    "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css",
    "/admin/nothing%00",
    "/",
    "/api/cdb_rest",
    "/api/cdb_rest/",
    "/favicon.ico",
]
PAGES = ["/", "/tags", "/api/docs/", "/login", "/admin/login/", "/admin/"]


def said(headers):
    return {name: headers.get(name) for name in HEADERS} | {"Server": headers.get("Server")}


@pytest.fixture(params=["run", "serve"])
def either(request):
    return request.getfixturevalue({"run": "service", "serve": "served"}[request.param])


@pytest.mark.parametrize("path", DATA)
def test_every_data_response_has_the_security_headers(either, path):
    browser = Browser(either.port)
    for method in ("GET", "HEAD"):
        _, headers, _ = browser(method, path)
        assert HEADERS.items() <= said(headers).items(), path
        assert all(len(headers.get_all(name)) == 1 for name in HEADERS)
        assert not re.search(r"\d", headers["Server"] or "")
    if headers.get("ETag"):
        # From nginx's cache too, and where nothing has changed.
        for _ in range(3):
            status, headers, _ = browser("GET", path, **{"If-None-Match": headers["ETag"]})
            assert status == 304 and HEADERS.items() <= said(headers).items()
            assert all(len(headers.get_all(name)) == 1 for name in HEADERS)


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_theirs(either, path):
    status, headers, _ = Browser(either.port)("GET", path, Accept="text/html")
    assert status in (200, 302)
    # The pages of the API description and of the admin have inline styles.
    expected = PAGE_HEADERS | ({POLICY: PAGE_POLICY} if path in ("/", "/tags", "/login") else {})
    assert {name: headers[name] for name in PAGE_HEADERS} == expected


@pytest.fixture
def operators(served):
    served.environment |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    made = served.manage("createsuperuser", "--noinput", "--username", "operator", "--email", "operator@example.org")
    assert made.returncode == 0 or "already taken" in made.stderr, made.stderr


def test_guesses_at_a_password_are_few_and_everything_else_goes_on(served, operators):
    # Those of the pages and of the admin together.
    paths = ["/login", "/login/", "/admin/login/"]
    answers = [Browser(served.port).log_in("wrong", path)[0] for path in paths * 4]
    assert answers[0] == 200 and answers[-1] == 429, answers
    browser = Browser(served.port)
    status, headers, body = browser.log_in(PASSWORD, "/login")
    assert status == 429 and json.loads(body)["code"] == "too_many_logins" and headers["Retry-After"] == "60"
    assert HEADERS.items() <= said(headers).items()
    assert browser("GET", "/admin/login/")[0] == browser("GET", LOOKUP)[0] == 200
