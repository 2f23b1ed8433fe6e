"""Writes that a browser sends for a page of another site are rejected; other clients are not affected."""

import json

import pytest

from cdb_rest.models import PayloadType

pytestmark = pytest.mark.django_db
OWN = "http://testserver"


def post(api, **headers):
    """Create a payload type without a Content-Type, as a page may that needs no permission for it."""
    return api("POST", "pt", raw=json.dumps({"name": "Written"}).encode(), content_type="", **headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://testserver:8001"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "http://evil.example/testserver"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "file://"},
        {"Origin": "file://testserver"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": OWN},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
    ],
    ids=str,
)
def test_a_write_of_another_site_is_refused_and_stores_nothing(api, headers):
    post(api, **headers).error(403, "cross_site_request")
    for method, path in [
        ("PUT", "gt_change_status/x/locked"),
        ("DELETE", "deletePayloadType/x"),
        ("POST", "/admin/login/"),
    ]:
        api(method, path, **headers).error(403, "cross_site_request")
    assert not PayloadType.objects.exists()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": OWN},
        {"Origin": "https://testserver"},
        {"Origin": OWN, "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
def test_own_pages_and_programs_write(api, headers):
    assert post(api, **headers).ok()["name"] == "Written"


def test_a_trusted_origin_writes_also_behind_a_proxy_that_changes_the_host(api, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://cdb.example.org"]
    assert post(api, Origin="https://cdb.example.org").ok()["name"] == "Written"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_reading_is_free(api, site):
    api.get("pt", **{"Origin": "http://evil.example", "Sec-Fetch-Site": site}).ok()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_the_types_of_forms_are_refused_without_any_of_these_headers(api, kind):
    api("POST", "pt", raw=b'{"name": "Written"}', content_type=kind).error(415, "unsupported_media_type")
