"""The request context: its route, actor and id, and how the request ended."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from cdb_rest.observe.request_context import ClientGoneError
from cdb_rest.observe.request_observer import Observed
from tests.observe.conftest import PREFIX

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("url", "status", "route"),
    [
        ("/api/cdb_rest/payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1", 200, "/api/cdb_rest/payloadiovs"),
        ("/api/cdb_rest/payload-iovs/query?gtName=tag&majorIOV=1&minorIOV=1", 200, "/api/cdb_rest/payload-iovs/query"),
        ("/api/cdb_rest/payloadiovs/?gtName=none&majorIOV=1&minorIOV=1", 404, "/api/cdb_rest/payloadiovs"),
        ("/api/cdb_rest/payloadiovs/?gtName=tag", 400, "/api/cdb_rest/payloadiovs"),
        ("/api/cdb_rest/globalTags", 200, "/api/cdb_rest/globalTags"),
        ("/api/cdb_rest/globalTag/tag/", 200, "/api/cdb_rest/globalTag/<name>"),
        ("/api/cdb_rest/global-tags/tag/export", 200, "/api/cdb_rest/global-tags/<name>/export"),
        ("/api/cdb_rest/globalTag/tag/?x=%00", 400, "/api/cdb_rest/globalTag/<name>"),
        ("/health/live", 200, "/health/live"),
        ("/", 200, "/"),
        ("/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css", 200, "/static/<file>"),
        ("/static/nothing", 404, None),
        ("/api/cdb_rest/nothing/tag", 404, None),
        ("/wp-login.php", 404, None),
    ],
)
def test_the_route_is_known_by_its_pattern(service, build, url, status, route):
    build.tag()
    assert service("GET", url)[0] == status
    assert service.last().route == route
    assert service.last().status == status


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "globalTags",
        "global-tags/",
        "globalTag/tag",
        "globalTag/tag/",
        "globalTag/tag?light",
        "global-tags/tag",
        "gtPayloadLists/tag",
        "global-tags/tag/payload-lists/",
        "payloadiovs/?gtName=tag&majorIOV=1&minorIOV=1",
    ],
)
def test_an_answer_that_is_kept_has_the_same_route(service, build, path):
    build.tag()
    _, headers, _ = service("GET", PREFIX + path)
    first = service.last().route
    assert service("GET", PREFIX + path, HTTP_IF_NONE_MATCH=headers["ETag"])[0] == 304
    assert service.last().route == first
    assert "tag/" not in first.replace("<name>", "")


def test_the_actor_is_the_client_or_the_user(service, build):
    service("GET", "/api/cdb_rest/globalTags")
    assert service.last().actor == "192.0.2.7"
    service("GET", "/api/cdb_rest/globalTags", REMOTE_ADDR="", HTTP_X_FORWARDED_FOR="198.51.100.1")
    assert service.last().actor == "198.51.100.1"
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    assert service("GET", "/admin/", HTTP_COOKIE=f"sessionid={client.cookies['sessionid'].value}")[0] == 200
    assert (service.last().route, service.last().actor) == ("/admin", "operator")


@pytest.mark.parametrize("name", ["job-7", "0123456789abcdef" * 4, "a.b_c-d"])
def test_a_good_name_is_kept(service, name):
    _, headers, _ = service("GET", "/health/live", HTTP_X_REQUEST_ID=name)
    assert headers["X-Request-ID"] == service.last().request_id == name


@pytest.mark.parametrize("name", ["", "a" * 65, "*/ DROP", "a b", "a\nb", "-a", "é", "a%s", "a;b"])
def test_another_one_is_replaced(service, name):
    _, headers, _ = service("GET", "/health/live", HTTP_X_REQUEST_ID=name)
    assert headers["X-Request-ID"] == service.last().request_id != name
    assert service.last().request_id.isalnum()


def observed(application):
    return Observed(application, on_error=lambda error: (500, {}, str(error).encode()))


def test_an_answer_that_breaks_off_ends_by_its_error(told):
    def breaks(environ, start_response):
        start_response("200 OK", [])
        yield b"["
        raise OSError("gone")

    body = observed(breaks)({}, lambda *_: None)
    with pytest.raises(OSError, match="gone"):
        list(body)
    assert not told.ended_with
    body.close()
    [(context, error)] = told.ended_with
    assert context.status == 200 and str(error) == "gone"


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_an_answer_that_is_not_taken_to_its_end_is_one_whose_client_is_gone(told, taken):
    body = observed(lambda environ, start_response: iter([b"[", b"]"]))({}, lambda *_: None)
    pieces = iter(body)
    for _ in range(taken):
        next(pieces)
    body.close()
    pieces.close()
    [(_, error)] = told.ended_with
    assert isinstance(error, ClientGoneError)


def test_an_application_that_fails_ends_once_with_an_error_response(told):
    def fails(environ, start_response):
        raise ValueError("no luck")

    assert observed(fails)({}, lambda *_: None) == [b"no luck"]
    [(context, error)] = told.ended_with
    assert (context.status, error) == (500, None)
