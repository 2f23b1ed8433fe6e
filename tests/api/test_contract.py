"""Rules for all routes, and the entry points of the service."""

import json
import re

import pytest
from django.test import Client

from cdb_rest.api.urls import views_and_paths
from tests.conftest import PREFIX

pytestmark = pytest.mark.django_db
parametrize = pytest.mark.parametrize


def concrete_paths():
    """Every documented path with values for its parameters."""
    for view, paths in views_and_paths():
        for path in paths:
            yield (
                view,
                re.sub(
                    r"<str:(\w+)>",
                    lambda match: "1" if match[1].endswith(("id", "major", "minor", "end")) else "x",
                    path,
                ),
            )


@pytest.mark.django_db(transaction=True)
@parametrize(("view", "path"), list(concrete_paths()))
def test_both_spellings_give_the_same_answer_and_none_redirects(api, world, view, path):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "FOO"):
        first, second = (api(method, spelling) for spelling in (path.rstrip("/"), path.rstrip("/") + "/"))
        assert first.status == second.status
        assert first.status not in range(300, 400) and first.status < 500
        if not hasattr(view, method.lower()):
            first.error(405, "method_not_allowed")
            assert first.headers["Allow"]


@parametrize("path", sorted({path for view, path in concrete_paths() if hasattr(view, "get")}))
def test_head_is_get_without_the_body(api, world, path):
    query = "?gtName=run24&majorIOV=1&minorIOV=1"
    get, head = api("GET", path + query), api("HEAD", path + query)
    assert head.content == b""
    assert head.status == get.status
    # No two requests take the same time.
    assert head.headers.pop("Server-Timing") and get.headers.pop("Server-Timing")
    assert head.headers == get.headers


@pytest.mark.django_db(transaction=True)
def test_unknown_paths_are_404_in_json(api):
    for path in ("/nothing", "/api/", "globalTag/", "globalTag/a/b/c", "globalTag/%FF%FE", "globalTag/a%2Fb"):
        api.get(path).error(404)


def test_health(api):
    assert api.get("/health/live").ok() == {"status": "live"}
    assert api.get("/health/ready").ok() == {"status": "ready"}
    for path in ("/health/live", "/health/ready"):
        answer = api.post(path)
        answer.error(405)
        assert answer.headers["Allow"] == "GET, HEAD"


def test_the_schema_is_valid_and_has_every_documented_path(api):
    described = set(json.loads(api.get("/api/schema/").content)["paths"])
    assert described == {
        PREFIX + re.sub(r"<str:(\w+)>", r"{\1}", path) for _, paths in views_and_paths() for path in paths
    }


@pytest.mark.parametrize("path", ["/", PREFIX, PREFIX.rstrip("/")])
def test_every_link_of_an_index_is_answered(api, world, path):
    index = api.get(path).ok()
    assert {"docs", "schema"} <= set(index)
    links = [link.format(gtName="run24", majorIOV=1, minorIOV=0) for link in index.values() if link != "cdb"]
    statuses = {link: Client().get(link).status_code for link in links}
    assert set(statuses.values()) == {200}, statuses
