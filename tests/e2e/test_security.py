"""Security as clients and browsers meet it: headers on whatever answers, the admin's login, HTTPS in front."""

import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time
from urllib.parse import urlencode

import psutil
import pytest

from cdb.env import ROOT
from cdb.serving.program import find
from cdb_rest.api.security import HEADERS, PAGE_HEADERS
from tests.e2e.faults import occupied
from tests.e2e.refused import REFUSED
from tests.e2e.service import Service, free_port, raw

HOST = "cdb.example.org"
PASSWORD = "correct horse battery"
LOOKUP = "/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"
DATA = [
    LOOKUP, LOOKUP + "&shape=dict", "/api/cdb_rest/payloadiovs/?gtName=nobody&majorIOV=5&minorIOV=0", "/api/cdb_rest/globalTags",
    "/api/cdb_rest/globalTag/tiny", "/api/cdb_rest/global-tags/tiny/export", "/health/live", "/health/ready", "/nothing",
    "/api/schema/", "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css", "/admin/nothing%00",
    "/", "/api/cdb_rest", "/api/cdb_rest/", "/favicon.ico",
]  # fmt: skip
PAGES = ["/", "/api/docs/", "/admin/login/", "/admin/"]


def said(headers):
    return {name: headers.get(name) for name in HEADERS} | {"Server": headers.get("Server")}


class Browser:
    """Keeps cookies, as a browser does, and follows no redirects."""

    def __init__(self, port, secure=None, host="localhost"):
        self.port, self.secure, self.host = port, secure, host
        self.cookies = {}
        self.set = []

    def __call__(self, method, path, form=None, **headers):
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind("127.0.0.1", self.port, timeout=60, **({"context": self.secure} if self.secure else {}))
        headers["Host"] = f"{self.host}:{self.port}"
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, urlencode(form) if form is not None else None, headers)
        response = connection.getresponse()
        self.set = response.headers.get_all("Set-Cookie") or []
        for cookie in self.set:
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[name] = value
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def log_in(self, password, **headers):
        _, _, page = self("GET", "/admin/login/")
        token = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page)[1].decode()
        form = {"username": "operator", "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"}
        return self("POST", "/admin/login/?next=/admin/", form, **headers)


@pytest.fixture(params=["run", "serve"])
def either(request):
    return request.getfixturevalue({"run": "service", "serve": "served"}[request.param])


@pytest.mark.parametrize("path", DATA)
def test_data_has_the_headers_whoever_answers(either, path):
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


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/favicon.ico", "image/x-icon"),
        ("/api/cdb_rest", "application/json"),
        ("/api/cdb_rest/", "application/json"),
    ],
)
def test_the_entry_points_are_served_whoever_answers(either, path, kind):
    status, headers, body = Browser(either.port)("GET", path, Accept="text/html, */*;q=0.8")
    assert (status, headers["Content-Type"]) == (200, kind) and len(body) == int(headers["Content-Length"]) > 0


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_theirs(either, path):
    status, headers, _ = Browser(either.port)("GET", path, Accept="text/html")
    assert status in (200, 302)
    assert {name: headers[name] for name in PAGE_HEADERS} == PAGE_HEADERS


@pytest.mark.parametrize("sent", [sent for sent, _ in REFUSED])
def test_refusals_have_them_too(either, sent):
    _, headers, _ = raw(either.port, sent)
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= headers.items()


def test_what_is_turned_away_for_its_wait_has_them(small):
    with occupied(small):
        status, headers, body = Browser(small.port)("GET", LOOKUP)
    assert status == 504 and json.loads(body)["code"] == "overloaded"
    assert HEADERS.items() <= said(headers).items()


@pytest.fixture
def operators(served):
    served.environment |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    made = served.manage("createsuperuser", "--noinput", "--username", "operator", "--email", "operator@example.org")
    assert made.returncode == 0 or "already taken" in made.stderr, made.stderr


def test_guesses_at_a_password_are_few_and_everything_else_goes_on(served, operators):
    answers = [Browser(served.port).log_in("wrong")[0] for _ in range(12)]
    assert answers[0] == 200 and answers[-1] == 429, answers
    browser = Browser(served.port)
    status, headers, body = browser.log_in(PASSWORD)
    assert status == 429 and json.loads(body)["code"] == "too_many_logins" and headers["Retry-After"] == "60"
    assert HEADERS.items() <= said(headers).items()
    assert browser("GET", "/admin/login/")[0] == browser("GET", LOOKUP)[0] == 200


@pytest.fixture(scope="module")
def secured(needs_packages, new_directory):
    """The production shape behind the nginx with HTTPS that docs/security.md shows; the port of that one, and the service."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed (apt-get install openssl)")

    directory = new_directory()
    directory.chmod(0o755)
    service = Service(directory / "data", "serve", CDB_TLS="1", CDB_ALLOWED_HOSTS=HOST, CDB_BEHIND_PROXY="1").start()
    service.environment |= {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    made = service.manage("createsuperuser", "--noinput", "--username", "operator", "--email", "operator@example.org")
    assert made.returncode == 0, made.stderr
    port = free_port()
    front = _start_front(directory, port, service.port)
    yield port, service
    front.terminate()
    front.wait(20)
    service.stop()
    service.kill_everything()


def _start_front(directory, port, service_port):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}", "-addext",
         f"subjectAltName=DNS:{HOST}", "-keyout", "cdb.key", "-out", "cdb.pem"], cwd=directory, check=True, capture_output=True,
    )  # fmt: skip
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "s3cret"], capture_output=True, text=True, check=True).stdout
    (directory / "cdb.passwords").write_text(f"expert:{hashed}")
    [shown] = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.DOTALL)
    replaced = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "127.0.0.1:8000": f"127.0.0.1:{service_port}",
        "/etc/ssl/certs/cdb.pem": f"{directory}/cdb.pem", "/etc/ssl/private/cdb.key": f"{directory}/cdb.key",
        "/etc/nginx/cdb.passwords": f"{directory}/cdb.passwords",
    }  # fmt: skip
    for old, new in replaced.items():
        assert old in shown
        shown = shown.replace(old, new)
    paths = "".join(
        f"{name}_temp_path {directory}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"daemon off; pid front.pid; error_log stderr; events {{}} http {{ access_log off; {paths} {shown} }}"
    (directory / "front.conf").write_text(text)
    front = subprocess.Popen([find("nginx"), "-p", f"{directory}/", "-c", "front.conf", "-e", "stderr"])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return front
        time.sleep(0.1)
    raise AssertionError("the nginx in front does not answer")


@pytest.fixture
def browser(secured):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return Browser(secured[0], context, HOST)


def test_the_admin_works_by_https_and_keeps_its_cookies_there(browser):
    origin = f"https://{HOST}:{browser.port}"
    status, headers, body = browser.log_in(PASSWORD, Origin=origin, Referer=f"{origin}/admin/login/")
    assert (status, headers["Location"]) == (302, "/admin/"), body
    assert {cookie.split("=")[0] for cookie in browser.set} == {"csrftoken", "sessionid"}
    for cookie in browser.set:
        flags = {flag.strip().lower() for flag in cookie.split(";")[1:]}
        assert {"secure", "httponly", "samesite=strict", "path=/admin/"} <= flags, cookie
    status, headers, page = browser("GET", "/admin/cdb_rest/globaltagchange/")
    assert status == 200 and b"operator" in page.lower()
    assert headers["Strict-Transport-Security"] == "max-age=31536000"


def test_a_form_from_elsewhere_is_refused_by_https(browser):
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": f"http://{HOST}"},
        {"Referer": "https://evil.example/"},
    ):
        status, _, body = browser.log_in(PASSWORD, **headers)
        # Django's own check of the admin's forms knows the Referer, too.
        code = "cross_site_request" if headers.get("Origin") == "https://evil.example" else json.loads(body)["code"]
        assert status == 403 and json.loads(body)["code"] == code, headers


def test_without_https_the_admin_sends_to_it_and_the_api_answers(secured):
    _, service = secured
    browser = Browser(service.port)
    status, headers, _ = browser("GET", "/admin/", Host="ignored")
    assert status in (301, 400)
    direct = Browser(service.port, host=HOST)
    status, headers, _ = direct("GET", "/admin/login/")
    assert status == 301 and headers["Location"].startswith(f"https://{HOST}") and not direct.cookies
    status, headers, body = direct("GET", LOOKUP)
    assert status == 200 and len(json.loads(body)) == 10 and "Strict-Transport-Security" not in headers


def test_whoever_has_no_password_may_read_and_not_write(browser):
    assert browser("GET", LOOKUP)[0] == browser("HEAD", LOOKUP)[0] == 200
    status, headers, body = browser("POST", "/api/cdb_rest/pt")
    assert status == 401 and json.loads(body)["code"] == "unauthorized" and "Basic" in headers["WWW-Authenticate"]
    status, _, _ = browser("DELETE", "/api/cdb_rest/deleteGlobalTag/tiny")
    assert status == 401
    # expert:s3cret
    status, _, body = browser(
        "PUT", "/api/cdb_rest/gt_change_status/tiny/locked", Authorization="Basic ZXhwZXJ0OnMzY3JldA=="
    )
    assert status == 200 and json.loads(body)["status"] == "locked"
    _, _, changes = browser("GET", "/api/cdb_rest/global-tags/tiny/changes")
    assert json.loads(changes)["results"][0]["actor"] == "expert"


def test_no_file_with_a_secret_is_for_others(secured):
    _, service = secured
    for name in ("secret_key", "serve/pgbouncer.ini", "serve/nginx.conf", "serve/pgbouncer.log"):
        assert (service.data / name).stat().st_mode & 0o077 == 0, name
    commands = [" ".join(process.cmdline()) for process in service.family() if psutil.pid_exists(process.pid)]
    assert not any("password" in command or PASSWORD in command for command in commands)
