"""`make serve` behind deploy/nginx-https.conf, a proxy with HTTPS and passwords, with the settings of docs/deploy.md."""

import base64
import contextlib
import http.client
import json
import re
import ssl
import subprocess

import pytest

from cdb.env import ROOT
from cdb.serving.supervisor import nginx_program
from tests.e2e.clients import Browser
from tests.e2e.service import Service, free_port
from tests.programs import require
from tests.waiting import eventually, is_open, wait_until

HOST = "cdb.example.org"
PASSWORD = "correct horse battery"
LOOKUP = "/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


@pytest.fixture(scope="module")
def secured(needs_packages, new_directory):
    """The production shape behind the nginx with HTTPS; the port of that one, and the service."""
    require("openssl")

    directory = new_directory()
    directory.chmod(0o755)
    [shown] = re.findall(r"```sh\n(CDB_TLS=.*?)```", (ROOT / "docs/deploy.md").read_text(), re.DOTALL)
    settings = dict(line.split("=") for line in shown.splitlines()) | {"CDB_OPEN_WRITES": ""}
    service = Service(directory / "data", "serve", **settings).start()
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
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "cdb.key", "-out", "cdb.pem"]
    names = ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    subprocess.run(["openssl", "req", *options, *names], cwd=directory, check=True, capture_output=True)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "s3cret"], capture_output=True, text=True, check=True).stdout
    (directory / "cdb.passwords").write_text(f"expert:{hashed}")
    shown = (ROOT / "deploy/nginx-https.conf").read_text()
    replaced = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "127.0.0.1:8000": f"127.0.0.1:{service_port}",
        "/etc/ssl/certs/cdb.pem": f"{directory}/cdb.pem",
        "/etc/ssl/private/cdb.key": f"{directory}/cdb.key",
        "/etc/nginx/cdb.passwords": f"{directory}/cdb.passwords",
    }
    for old, new in replaced.items():
        assert old in shown
        shown = shown.replace(old, new)
    paths = "".join(
        f"{name}_temp_path {directory}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"daemon off; pid front.pid; error_log stderr; events {{}} http {{ access_log off; {paths} {shown} }}"
    (directory / "front.conf").write_text(text)
    front = subprocess.Popen([nginx_program(), "-p", f"{directory}/", "-c", "front.conf", "-e", "stderr"])
    wait_until(lambda: is_open(port))
    return front


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
        site = "lax" if cookie.startswith("sessionid") else "strict"
        assert {"secure", "httponly", f"samesite={site}", "path=/"} <= flags, cookie
    status, headers, page = browser("GET", "/admin/cdb_rest/accesschange/")
    assert status == 200 and b"operator" in page.lower()
    assert headers["Strict-Transport-Security"] == "max-age=31536000"


def test_without_https_the_admin_sends_to_it_and_the_api_answers(secured):
    _, service = secured
    browser = Browser(service.port)
    status, headers, _ = browser("GET", "/admin/", Host="ignored")
    assert status in (301, 400)
    direct = Browser(service.port, host=HOST)
    for path in ("/admin/login/", "/login", "/tokens"):
        status, headers, _ = direct("GET", path)
        assert status == 301 and headers["Location"].startswith(f"https://{HOST}") and not direct.cookies
    status, headers, body = direct("GET", LOOKUP)
    assert status == 200 and len(json.loads(body)) == 10 and "Strict-Transport-Security" not in headers


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture(scope="module")
def token(secured):
    """The header with a token of the role manager."""
    _, service = secured
    made = service.manage("token", "create", "--name", "robot", "--role", "manager", "--expires", "1h")
    assert made.returncode == 0, made.stderr
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


def change(browser, status, **headers):
    """Status, headers and JSON of the response to a change of status."""
    answer = browser("PUT", f"/api/cdb_rest/gt_change_status/tiny/{status}", **headers)
    return answer[0], answer[1], json.loads(answer[2])


def query(browser, **headers):
    """The status of a read by POST."""
    connection = http.client.HTTPSConnection("127.0.0.1", browser.port, timeout=60, context=browser.secure)
    body = json.dumps({"gtName": "tiny", "moments": [[5, 0]]})
    headers |= {"Host": f"{HOST}:{browser.port}", "Content-Type": "application/json"}
    connection.request("POST", "/api/cdb_rest/payload-iovs/query", body, headers)
    with contextlib.closing(connection):
        return connection.getresponse().status


def test_every_client_may_read_by_get_and_by_post(browser, token):
    assert browser("GET", LOOKUP)[0] == browser("HEAD", LOOKUP)[0] == query(browser) == query(browser, **token) == 200


def test_a_token_writes_and_a_client_without_one_does_not(browser, token):
    status, headers, error = change(browser, "locked")
    assert status == 401 and error["code"] == "authentication_required"
    assert headers["WWW-Authenticate"].startswith("Bearer")
    assert change(browser, "locked", Authorization="Bearer cdb_x")[2]["code"] == "invalid_token"
    assert change(browser, "locked", **token)[0] == 200
    assert change(browser, "unlocked", **token)[0] == 200
    _, _, changes = browser("GET", "/api/cdb_rest/global-tags/tiny/changes")
    assert json.loads(changes)["results"][0]["actor"] == "token:robot"


def test_a_user_with_a_password_has_the_rules_for_the_name(browser, secured):
    _, service = secured
    right = basic("expert", "s3cret")
    assert change(browser, "locked", **right)[2]["code"] == "not_permitted"
    assert service.manage("grant", "user", "expert", "--role", "manager").returncode == 0
    eventually(lambda: change(browser, "locked", **right)[0], 200)
    _, _, changes = browser("GET", "/api/cdb_rest/global-tags/tiny/changes")
    assert json.loads(changes)["results"][0]["actor"] == "expert"
    # Neither a wrong password nor a name that the client sends in the proxy's header.
    for wrong in (
        basic("expert", "wrong"),
        {"Authorization": basic("expert", "x")["Authorization"].replace("B", "b", 1)},
    ):
        status, headers, error = change(browser, "unlocked", **wrong)
        assert status == 401 and error["code"] == "unauthorized" and "Basic" in headers["WWW-Authenticate"]
    forged = {"X-Forwarded-User": "expert", "X-Forwarded-For": "127.0.0.1"}
    assert change(browser, "unlocked", **forged)[2]["code"] == "authentication_required"


def test_no_file_with_a_secret_is_for_others(secured):
    _, service = secured
    for name in ("secret_key", "serve/nginx.conf", "serve/error.log"):
        assert (service.data / name).stat().st_mode & 0o077 == 0, name
    commands = service.ask_each(lambda process: " ".join(process.cmdline())).values()
    assert not any("password" in command or PASSWORD in command for command in commands)
