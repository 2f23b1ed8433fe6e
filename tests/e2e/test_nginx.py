"""HTTP through nginx: names, rejected requests, old versions of HTTP."""

import json
import socket
import uuid

import pytest

from tests.e2e.behind_nginx import PREFIX, ask
from tests.e2e.refused import REFUSED, request
from tests.e2e.service import JobClient, raw

MANY_FIELDS = b"".join(b"X-%d: 1\r\n" % number for number in range(150))


@pytest.mark.parametrize("name", ["Ösel", "a b", "a%b", "a+b", "a;b", "..", "a\\b", "ß?#"])
def test_a_name_reaches_the_service_as_the_client_sent_it(served, service, name):
    target = PREFIX + "globalTag/" + "".join(f"%{byte:02X}" for byte in name.encode()) + "?light"
    direct, proxied = (ask(one, "GET", target) for one in (service, served))
    assert (proxied[0], proxied[2]) == (direct[0], direct[2])
    assert f" {name}." in proxied[2]["detail"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        *REFUSED,
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /.error/malformed HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (request(b"GET", b"globalTag/a%zz"), 400),
    ],
)
def test_every_rejection_is_json_from_nginx_and_from_gunicorn(served, sent, status):
    found, headers, body = raw(served.port, sent)
    assert found == status, body
    assert headers["content-type"] == "application/json" and headers["cache-control"] == "no-store"
    error = json.loads(body)
    assert error["detail"] and error["code"]


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"GET"])
@pytest.mark.parametrize("path", [b"gt", b"globalTags", b"nothing/here"])
@pytest.mark.parametrize("megabytes", [1, 40])
def test_the_response_to_an_unwanted_body_arrives(served, method, path, megabytes):
    sent = request(method, path, b"Content-Type: application/json\r\n", b" " * (megabytes << 20))
    status, headers, body = raw(served.port, sent)
    assert status in (200, 400, 404, 405, 413)
    assert (status == 413) == (megabytes == 40)
    assert headers["content-type"] == "application/json" and json.loads(body)


def test_a_body_a_little_too_large_is_refused_by_the_service_itself(served):
    sent = request(b"POST", b"pt", b"Content-Type: application/json\r\n", b" " * (16 * 1024 * 1024 + 1))
    status, _, body = raw(served.port, sent)
    assert status == 413 and "16777217 bytes" in json.loads(body)["detail"]


def test_a_chunked_body_is_refused_as_the_service_alone_does(served):
    name = f"chunked{uuid.uuid4().hex}"
    content = json.dumps({"name": name}).encode()
    head = request(b"POST", b"pt", b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n")
    status, _, body = raw(served.port, head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))
    assert status == 400 and json.loads(body)["code"] == "length_required"


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


@pytest.mark.parametrize("path", [b"globalTags", b"gtstatus", b"payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"])
def test_head_has_the_length_of_get_and_no_body(served, path):
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(request(b"HEAD", path) + request(b"GET", path, b"Connection: close\r\n"))
        data = b""
        while piece := connection.recv(65536):
            data += piece
    first, second, body = data.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200") and second.startswith(b"HTTP/1.1 200")
    length = next(line for line in first.split(b"\r\n") if line.lower().startswith(b"content-length"))
    assert length == b"Content-Length: %d" % len(body)


def test_a_part_of_an_answer_is_not_to_be_had(served):
    status, _, rows = ask(served, "GET", f"{PREFIX}payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0", Range="bytes=0-9")
    assert status == 200 and len(rows) == 10


def test_clients_that_fall_silent_are_let_go(served):
    begun = [request(b"POST", b"pt", b"Content-Type: application/json\r\nContent-Length: 50\r\n"), b"GET /api", b""]
    silent = [socket.create_connection(("127.0.0.1", served.port), timeout=60) for _ in range(30)]
    for number, connection in enumerate(silent):
        connection.sendall(begun[number % 3])
    # None of them holds a thread.
    assert len(JobClient(served.port).get("payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0")) == 10
    assert JobClient(served.port).call("POST", "pt", {"name": f"beside{uuid.uuid4().hex}"})[0] == 200
    for connection in silent:
        try:
            received = connection.recv(1000)
            assert not received or b"incomplete_body" in received
        except ConnectionResetError:
            continue
        finally:
            connection.close()


def test_http_0_9_is_refused_as_an_answer_without_a_status_would_not_tell_errors(served):
    for path in ("/health/live", f"{PREFIX}globalTags", f"{PREFIX}gt"):
        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
            connection.sendall(f"GET {path}\r\n".encode())
            received = b""
            while piece := connection.recv(65536):
                received += piece
        assert json.loads(received)["code"] == "malformed_request"


@pytest.mark.parametrize(
    ("shape", "fields"),
    [("served", MANY_FIELDS), ("service", MANY_FIELDS), ("service", b"X: " + b"x" * 1_000_000 + b"\r\n")],
    ids=["served", "service", "service-long"],
)
def test_too_many_header_fields_are_refused(request, shape, fields):
    port = request.getfixturevalue(shape).port
    assert raw(port, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n")[0] == 431


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
