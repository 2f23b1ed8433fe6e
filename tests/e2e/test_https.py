"""`make serve` behind a proxy with HTTPS and passwords, as docs/security.md configures it."""

import json
import re
import socket
import ssl
import subprocess
import time

import pytest

from cdb.env import ROOT
from cdb.serving.supervisor import nginx_program
from tests.e2e.clients import Browser
from tests.e2e.service import Service, free_port
from tests.programs import require

HOST = "cdb.example.org"
PASSWORD = "correct horse battery"
LOOKUP = "/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


@pytest.fixture(scope="module")
def secured(needs_packages, new_directory):
    """The production shape behind the nginx with HTTPS that docs/security.md shows; the port of that one, and the service."""
    require("openssl")

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
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={HOST}",
            "-addext",
            f"subjectAltName=DNS:{HOST}",
            "-keyout",
            "cdb.key",
            "-out",
            "cdb.pem",
        ],
        cwd=directory,
        check=True,
        capture_output=True,
    )
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "s3cret"], capture_output=True, text=True, check=True).stdout
    (directory / "cdb.passwords").write_text(f"expert:{hashed}")
    [shown] = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/security.md").read_text(), re.DOTALL)
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
        site = "lax" if cookie.startswith("sessionid") else "strict"
        assert {"secure", "httponly", f"samesite={site}", "path=/"} <= flags, cookie
    status, headers, page = browser("GET", "/admin/cdb_rest/globaltagchange/")
    assert status == 200 and b"operator" in page.lower()
    assert headers["Strict-Transport-Security"] == "max-age=31536000"


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


def test_a_client_without_a_password_may_read_and_not_write(browser):
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
    for name in ("secret_key", "serve/nginx.conf", "serve/error.log"):
        assert (service.data / name).stat().st_mode & 0o077 == 0, name
    commands = service.ask_each(lambda process: " ".join(process.cmdline())).values()
    assert not any("password" in command or PASSWORD in command for command in commands)
