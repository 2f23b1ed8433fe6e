"""HTTP through nginx: names, rejected requests, the server of each route, and logs."""

import contextlib
import http.client
import json
import re
import socket
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from urllib.parse import quote

import psutil
import pytest
import requests

from cdb.serving.supervisor import nginx_program
from cdb_rest.http.security import HEADERS
from cdb_rest.routes import ROUTES, Pool
from loadtests.service import free_port
from tests.e2e.clients import PREFIX, ask, request
from tests.e2e.service import JobClient, raw
from tests.waiting import eventually, is_open


@pytest.mark.parametrize("name", ["Ösel", "a b", "a%b", "a+b", "a;b", "..", "a\\b", "ß?#"])
def test_a_name_reaches_the_service_as_the_client_sent_it(served, service, name):
    target = PREFIX + "globalTag/" + "".join(f"%{byte:02X}" for byte in name.encode()) + "?light"
    direct, proxied = (ask(one, "GET", target) for one in (service, served))
    assert (proxied[0], proxied[2]) == (direct[0], direct[2])
    assert f"{name!r}." in proxied[2]["detail"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"get / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: nonsense\r\n\r\n", 400),
        (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400),
        (request(b"GET", b"globalTag/%ff%fe"), 404),
        (request(b"GET", b"globalTag/%00"), 400),
        (request(b"BREW", b"globalTags"), 405),
        (request(b"GET", b"nothing", b"SCRIPT_NAME: /foo\r\n"), 404),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /.error/malformed HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (request(b"GET", b"globalTag/a%zz"), 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nbroken header\r\n\r\n", 400),
        (request(b"GET", b"globalTag/\xff\xfe"), 400),
        (request(b"GET", b"globalTag/a#b?light"), 400),
        (request(b"GET", b"globalTag/a\x7fb?light"), 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"OPTIONS /api/docs/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"POST /api/schema HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (
            b"POST /static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui.css HTTP/1.1\r\nHost: localhost\r\n\r\n",
            405,
        ),
    ],
)
def test_every_rejection_is_json_from_nginx_and_from_gunicorn(served, sent, status):
    found, headers, body = raw(served.port, sent)
    assert found == status, body
    assert headers["content-type"] == "application/json" and headers["cache-control"] == "no-store"
    assert {name.lower(): value for name, value in HEADERS.items()}.items() <= headers.items()
    error = json.loads(body)
    assert error["detail"] and error["code"]


@pytest.mark.parametrize(
    ("server", "parts", "status"),
    [
        ("served", (b'{"name": ', b'"Chunked"}'), 200),
        ("served", (b" " * 2**20,) * 18, 413),
        ("service", (b'{"name": "Chunked"}',), 411),
    ],
)
def test_only_nginx_gives_a_chunked_body_its_length(request, server, parts, status):
    port = request.getfixturevalue(server).port
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))
    head = f"POST {PREFIX}pt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    found, headers, body = raw(port, head + chunks)
    assert (found, headers["content-type"]) == (status, "application/json"), body
    codes = {200: None, 413: "body_too_large", 411: "length_required"}
    assert json.loads(body).get("code") == codes[status]


NAMES_OF_ADOPTED_DATABASES = [
    "t8%2Fx", "a//b", "/", ".", "..", "../x?b#c", "%", "~2F", " x ", "a\nb;+", "", "é\u0430\u200b\x85", "-x", "statuses",
    "'\"<&>",
]  # fmt: skip


def follow(get, paths):
    """The text of each page about a tag or a comparison that the pages at `paths`, or such pages, have a link to."""
    found, left = {}, [get(path) for path in paths]
    while left:
        page = left.pop()
        for link in {unescape(one) for one in re.findall(r'href="(/(?:tags/|compare\?)[^"]*)"', page)} - found.keys():
            found[link] = get(link)
            left.append(found[link])
    return found


MAKE_TAGS = """
from tests.builders import Builder
for name in {names!r}:
    Builder().iov(Builder().list(Builder().tag(name), name), (2, 0), (3, 0), url="file")
"""
DELETE_TAGS = """
from cdb_rest.writes.global_tags import delete_global_tag
for name in {names!r}:
    delete_global_tag(name=name)
"""


@pytest.fixture
def adopted(served):
    """Global tags and payload types with names that new ones could not have, in the database of `served`."""

    def run(code):
        done = served.manage("shell", "-c", code.format(names=NAMES_OF_ADOPTED_DATABASES))
        assert done.returncode == 0, done.stderr

    run(MAKE_TAGS)
    yield served
    run(DELETE_TAGS)


def test_the_links_and_commands_work_for_every_existing_name(adopted):
    """The client removes dot segments from paths, as a browser does."""
    with requests.Session() as session:

        def get(path):
            answer = session.get(f"http://127.0.0.1:{adopted.port}{path}", headers={"Accept": "text/html"}, timeout=20)
            assert answer.status_code == 200, path
            return answer.text

        starts = [f"/?tag={quote(name)}&major=2" for name in NAMES_OF_ADOPTED_DATABASES]
        followed = follow(get, ["/", "/tags", "/payloads?value=file", *starts])
        for name in filter(None, NAMES_OF_ADOPTED_DATABASES):
            get(f"/compare?a={quote(name)}&b=tiny&type={quote(name)}")
    # The path has only characters that no server decodes or changes.
    paths = {link.partition("?")[0] for link in followed if "compare" not in link}
    assert all(re.fullmatch("/tags(/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*", path) for path in paths)
    titles = [unescape(page).split("<h1>")[1] for link, page in followed.items() if not link.endswith("history.atom")]
    for name in NAMES_OF_ADOPTED_DATABASES:
        assert sum(title.startswith(f"{name} <") for title in titles) >= 2, name
    # Commands take those that look like options.
    assert "1 of 1 payload types have gaps" in adopted.manage("check_coverage", "--", "-x").stderr
    missing = adopted.manage("check_coverage", "--", "--version")
    assert missing.stderr == "CommandError: There is no global tag '--version'.\n"
    assert adopted.manage("check_names").returncode == 1


@pytest.mark.parametrize("method", [b"POST", b"GET"])
@pytest.mark.parametrize("path", [b"gt", b"globalTags", b"nothing/here"])
@pytest.mark.parametrize("megabytes", [1, 40])
def test_the_response_to_an_unwanted_body_arrives(served, method, path, megabytes):
    # The whole body is sent before the answer is read, as simple clients do; a reset connection would lose the answer.
    sent = request(method, path, b"Content-Type: application/json\r\n", b" " * (megabytes << 20))
    status, headers, body = raw(served.port, sent)
    assert status in (200, 400, 404, 405, 413)
    assert (status == 413) == (megabytes == 40)
    assert headers["content-type"] == "application/json" and json.loads(body)


@pytest.mark.parametrize("host", [b"", b"Host: localhost\r\n"])
@pytest.mark.parametrize("path", [b"globalTags", b"gt"])
def test_a_client_of_http_1_0_gets_the_whole_answer_and_a_closed_connection(served, host, path):
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(b"GET %s%s HTTP/1.0\r\n%s\r\n" % (PREFIX.encode(), path, host))
        received = b""
        while piece := connection.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0] and b"chunked" not in head.lower()
    assert any(tag["name"] == "tiny" for tag in json.loads(body))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("via", ["", "1.0 old-proxy", "1.1 a, 1.0 b"])
def test_an_http_1_0_client_gets_no_truncated_response_that_looks_complete(served, version, via):
    """An export is refused, and the document of a tag has no name under which a cache could keep a part of it."""
    head = f"HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n" + (f"Via: {via}\r\n" if via else "") + "\r\n"
    is_old = version == "1.0" or bool(via)
    for _ in range(3):
        status, headers, _ = raw(served.port, f"GET {PREFIX}global-tags/tiny/export {head}".encode())
        assert status == (400 if is_old else 200)
        status, headers, _ = raw(served.port, f"GET {PREFIX}globalTag/tiny {head}".encode())
        assert status == 200 and ("etag" in headers) != is_old
        # Lookups are sent with their length.
        status, headers, _ = raw(
            served.port, f"GET {PREFIX}payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0 {head}".encode()
        )
        assert status == 200 and "etag" in headers and "content-length" in headers


def test_the_access_log_says_where_the_time_went(served, log):
    request_id = f"job-17.{uuid.uuid4().hex}"
    target = f'{PREFIX}globalTag/a"b\\?light'
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {request_id}\r\n\r\n".encode())
        head = connection.recv(65536)
    assert f"X-Request-ID: {request_id}\r\n".encode() in head
    entry = log[request_id]
    assert (entry["client"], entry["method"], entry["uri"], entry["status"]) == ("127.0.0.1", "GET", target, 404)
    # Both are rounded, each from a clock of its own.
    assert entry["bytes"] > 0 and entry["request_time"] + 0.05 >= float(entry["upstream_response_time"]) >= 0
    assert float(entry["upstream_connect_time"]) >= 0 and float(entry["upstream_header_time"]) >= 0
    assert entry["time"] and entry["cache"] == "MISS"


def test_the_access_log_has_no_character_that_could_steer_a_terminal(served, log):
    for path in (b"\xc2\x9b", b"\xe2\x80\xa8", b"\x9b"):
        request_id = f"steer.{uuid.uuid4().hex}"
        status, _, _ = raw(served.port, request(b"GET", b"gt/" + path, b"X-Request-ID: %s\r\n" % request_id.encode()))
        assert status == 400
        assert log[request_id]["uri"] == "(not printable ASCII)"


def scrape(address, **headers):
    """The status of /metrics at an address and a port."""
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=30)) as connection:
        connection.request("GET", "/metrics", headers={name.replace("_", "-"): text for name, text in headers.items()})
        return connection.getresponse().status


@pytest.mark.parametrize("name", ["X_Forwarded_For", "Forwarded", "Via"])
def test_the_metrics_are_not_for_clients_of_a_proxy(served, name):
    here = ("127.0.0.1", served.port)
    assert scrape(here) == 200
    assert scrape(here, **{name: "127.0.0.1"}) == 404


@pytest.mark.parametrize("is_configured", [True, False])
def test_the_metrics_are_for_the_networks_of_the_setting(served, tmp_path, is_configured):
    """A second nginx in front of the same service, which listens on all addresses."""
    found = [one.address for all in psutil.net_if_addrs().values() for one in all if one.family == socket.AF_INET]
    outer = next((address for address in found if not address.startswith("127.")), None)
    if outer is None:
        pytest.skip("this machine has no other address than 127.0.0.1")
    text, port = (served.data / "serve" / "nginx.conf").read_text(), free_port()
    text = text.replace(f"listen 127.0.0.1:{served.port}", f"listen 0.0.0.0:{port}")
    text = text.replace(
        "127.0.0.0/8 1; ::1 1;", f"127.0.0.0/8 1; ::1 1; {outer} 1;" if is_configured else "127.0.0.0/8 1;"
    )
    (tmp_path / "nginx.conf").write_text(text)
    with subprocess.Popen([nginx_program(), "-p", f"{tmp_path}/", "-c", "nginx.conf", "-e", "stderr"]) as front:
        try:
            eventually(lambda: is_open(port), True)
            assert scrape(("127.0.0.1", port)) == 200
            assert scrape((outer, port)) == (200 if is_configured else 404)
            assert scrape((outer, port), X_Forwarded_For="127.0.0.1") == 404
        finally:
            front.terminate()


def test_logs_and_configuration_are_for_their_owner_alone(served):
    ask(served, "GET", f"{PREFIX}globalTags")
    files = [file for file in (served.data / "serve").iterdir() if file.suffix in (".log", ".conf", ".ini")]
    assert {file.name for file in files} >= {"access.log", "error.log", "service.log", "nginx.conf"}
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in files} == {file.name: "0o600" for file in files}


def test_the_change_log_names_the_client_and_not_what_it_claims_to_be(served):
    tag = f"actor{uuid.uuid4().hex}"
    body = json.dumps({"name": tag, "status": "unlocked"}).encode()
    headers = b"Content-Type: application/json\r\nX-Forwarded-For: 10.1.2.3\r\nX-Forwarded-User: root\r\n"
    status, _, _ = raw(served.port, request(b"POST", b"gt", headers, body))
    assert status == 200
    [change] = JobClient(served.port).get(f"global-tags/{tag}/changes")["results"]
    assert change["actor"] == "127.0.0.1"


def routes():
    """Each path of a GET, with a query and the pool that it belongs to."""
    for route in ROUTES:
        for path in route.paths:
            if route.pool == Pool.LOOKUPS_IF_LIGHT:
                yield from ((route, path, "", "heavy"), (route, path, "light=1", "lookups"))
            elif route.pool == Pool.HEAVY_IF_WHOLE:
                yield from ((route, path, "", "heavy"), (route, path, "page=1", "reads"))
            else:
                yield route, path, "", route.pool


def test_old_clients_at_one_address_look_up_iovs_at_the_same_time(served):
    target = f"{PREFIX}payloadiovs_orm_max/?gtName=tiny&majorIOV=5&minorIOV=0"
    with ThreadPoolExecutor(20) as pool:
        assert {status for status, _, _ in pool.map(lambda _: ask(served, "GET", target), range(60))} == {200}


def test_each_route_goes_where_it_should(served, log):
    sent = {}
    for route, path, query, pool in routes():
        if pool == "reads" and not route.queries and route.writes:
            continue  # It has no reads.
        pools = {"GET": pool, "HEAD": pool, "POST": "heavy" if route.reads_by_post or path == "requests" else "writes"}
        for name in ("missing", "%C3%96%20s", "a.b"):
            filled = re.sub("<str:.*?>", name, path).rstrip("/")
            for method in ("GET", "HEAD", "POST", "DELETE", "BREW"):
                for target in (filled, f"{filled}/"):
                    request_id = uuid.uuid4().hex
                    ask(served, method, f"{PREFIX}{target}?{query}", **{"X-Request-ID": request_id})
                    sent[request_id] = method, target, pools.get(method, "writes")
                if route.pin and method in ("GET", "HEAD", "DELETE"):
                    target, request_id = f"/pin/{name}@1{PREFIX}{filled}", uuid.uuid4().hex
                    ask(served, method, f"{target}?{query}", **{"X-Request-ID": request_id})
                    sent[request_id] = method, target, pools.get(method, "writes")
    found = log.pools(set(sent))
    assert [(method, target, found[key]) for key, (method, target, pool) in sent.items() if found[key] != pool] == []
