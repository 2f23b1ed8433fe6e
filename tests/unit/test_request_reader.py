"""Requests that arrive in pieces, on real pairs of sockets."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdb.worker import request_head, request_reader
from cdb.worker.spool import SpoolFullError
from tests.unit.worker_sockets import connected, whole

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.0.0.7\r\nContent-Length: %d\r\n\r\n"


@given(st.lists(st.binary(max_size=2000), max_size=4), st.lists(st.integers(1, 700), min_size=1, max_size=20))
def test_requests_are_complete_when_their_last_byte_is_there_and_not_before(bodies, sizes):
    requests = [(HEAD % len(body), body) for body in bodies]
    sent = b"".join(head + body for head, body in requests)
    ends = [sum(len(head) + len(body) for head, body in requests[: number + 1]) for number in range(len(requests))]
    with connected() as (reader, client):
        begin, read = 0, 0
        while begin < len(sent):
            size = sizes[begin % len(sizes)]
            client.sendall(sent[begin : begin + size])
            begin = min(begin + size, len(sent))
            while read < len(requests) and reader.receive():
                assert ends[read] <= begin
                assert (whole(reader), reader.head.address) == (requests[read], "10.0.0.7")
                reader.next_request()
                read += 1
            assert read == sum(end <= begin for end in ends)
        assert not reader.has_begun


def test_a_large_body_goes_through_a_file(monkeypatch):
    monkeypatch.setattr(request_reader, "MEMORY_BYTES", 1000)
    body = bytes(range(256)) * 2000
    with connected() as (reader, client):
        client.sendall(HEAD % len(body))
        for begin in range(0, len(body), 10_000):
            assert not reader.receive()
            client.sendall(body[begin : begin + 10_000])
        client.sendall(b"GET /next HTTP/1.1\r\n\r\n")
        assert reader.receive()
        assert whole(reader) == (HEAD % len(body), body)
        reader.next_request()
        assert reader.receive() and whole(reader)[0] == b"GET /next HTTP/1.1\r\n\r\n"


def test_without_room_in_the_spool_a_large_body_is_refused(monkeypatch):
    monkeypatch.setattr(request_reader, "MEMORY_BYTES", 1000)
    with connected(most_spooled=5000) as (reader, client):
        client.sendall(HEAD % 100_000)
        assert not reader.receive()
        client.sendall(b"x" * 10_000)
        with pytest.raises(SpoolFullError):
            reader.receive()
        reader.skip_body()
        assert reader.receive() and reader.is_unread
        # What needs no file is not refused.
        reader.take_buffered()
        reader.next_request()
        client.sendall(HEAD % 900 + b"x" * 900)
        assert reader.receive() and reader.size == 900


@pytest.mark.parametrize("field", [b"Content-Length: 1000001", b"Transfer-Encoding: chunked"])
def test_a_body_that_will_be_refused_is_not_waited_for(field):
    with connected() as (reader, client):
        client.sendall(b"POST /x HTTP/1.1\r\n%s\r\n\r\n" % field)
        assert reader.receive() and reader.is_unread


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\n\n", b"x" * (request_head.HEAD_BYTES + 1)])
def test_a_head_that_gunicorn_refuses_as_it_is_is_not_waited_for(head):
    with connected() as (reader, client):
        client.setblocking(False)
        while head and not reader.receive():
            head = head[client.send(head[:100_000]) :]
        assert reader.receive()


def test_a_client_that_waits_to_be_told_to_go_on_is_told_once():
    with connected() as (reader, client):
        client.sendall(b"POST /x HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert not reader.receive()
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"{}")
        assert reader.receive()
        # gunicorn would say it again.
        assert whole(reader) == (b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n", b"{}")


@pytest.mark.parametrize(
    "head", [b"POST /x HTTP/1.1\r\nContent-Length: 1000001", b"POST /x HTTP/1.0\r\nContent-Length: 2"]
)
def test_a_client_is_not_told_to_go_on_where_its_body_is_refused_or_its_version_has_no_such_word(head):
    with connected() as (reader, client):
        client.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert reader.receive() == reader.is_unread
        client.sendall(b"{}")
        reader.receive()
        # Nor by gunicorn.
        assert b"Expect" not in whole(reader)[0]
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(100)


@pytest.mark.parametrize(
    ("line", "may_be_large"),
    [
        ("GET /api/cdb_rest/gt", True),
        ("GET /api/cdb_rest/globalTag/tiny", True),
        ("HEAD /api/cdb_rest/piov?page=1", True),
        ("GET http://localhost/api/cdb_rest/piov/1", True),
        ("GET /api/cdb_rest/piov/1", False),
        ("GET /api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=1&minorIOV=0", False),
        ("GET /api/cdb_rest/payloadiovsrange/?gtName=tiny&startMajorIOV=0", True),
        ("GET /api/cdb_rest/globalTags", False),
        ("GET /health/ready", False),
        ("DELETE /api/cdb_rest/deleteGlobalTag/tiny", False),
    ],
)
def test_reads_that_may_be_large_are_known_by_their_line(line, may_be_large):
    with connected() as (reader, client):
        client.sendall(f"{line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert reader.receive() and reader.head.is_long_read == may_be_large


def test_a_body_whose_client_goes_away_is_not_taken_for_a_whole_one():
    with connected() as (reader, client):
        client.sendall(HEAD % 10 + b"12345")
        client.shutdown(socket.SHUT_WR)
        assert reader.receive() and reader.is_truncated and not reader.is_empty


def test_a_client_that_says_nothing_at_all_has_asked_nothing():
    with connected() as (reader, client):
        client.shutdown(socket.SHUT_WR)
        assert reader.receive() and reader.is_empty


def test_the_time_for_a_request_does_not_grow_with_the_bytes_that_come(monkeypatch):
    with connected() as (reader, client):
        client.sendall(b"POST ")
        assert not reader.receive()
        head = reader.expires
        client.sendall((HEAD % 160_000)[5:])
        assert not reader.receive()
        assert head == reader.begun + request_reader.HEAD_SECONDS
        clock = reader.begun
        expires = []
        for seconds in range(0, 60, 9):
            monkeypatch.setattr(request_reader, "monotonic", lambda at=clock + seconds: at)
            client.sendall(b"x")
            assert not reader.receive()
            expires.append(reader.expires - clock)
        # Silence of 15 s ends it, and in any case 30 s and 10 s for 160,000 bytes.
        assert expires[:3] == pytest.approx([15, 24, 33], abs=0.5)
        assert expires[3:] == pytest.approx([expires[3]] * 4) and 39 < expires[3] < 40.5


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"GET /a b HTTP/1.1", b"GET /a%20b HTTP/1.1"),
        ("GET /Ö HTTP/1.1".encode(), b"GET /%C3%96 HTTP/1.1"),
        (b"\r\nGET /a b HTTP/1.1", b"\r\nGET /a%20b HTTP/1.1"),
        (b"GET /a%20b HTTP/1.1", b"GET /a%20b HTTP/1.1"),
        (b"GET /", b"GET /"),
        # Too long for gunicorn, so it is not worth the time.
        (b"GET /" + b"\xff" * 8200 + b" HTTP/1.1", b"GET /" + b"\xff" * 8200 + b" HTTP/1.1"),
        (b"NONSENSE with spaces", b"NONSENSE with spaces"),
    ],
)
def test_a_target_that_the_client_did_not_escape_is_escaped(sent, read):
    with connected() as (reader, client):
        client.sendall(sent + b"\r\nContent-Length: 4\r\n\r\nbodyNEXT")
        assert reader.receive()
        assert whole(reader) == (read + b"\r\nContent-Length: 4\r\n\r\n", b"body")


@pytest.mark.parametrize(
    ("head", "identity"),
    [
        (
            b"PUT /a?b=c HTTP/1.1\r\nx-request-id: seven\r\nbad header\r\n\r\n",
            {"REQUEST_METHOD": "PUT", "PATH_INFO": "/a", "HTTP_X_REQUEST_ID": "seven"},
        ),
        (b"NONSENSE\r\nX-Request-ID: eight\r\n\r\n", {"HTTP_X_REQUEST_ID": "eight"}),
        (b"GET / HTTP/1.1\n\n", {}),
    ],
)
def test_a_request_that_cannot_be_parsed_is_known_by_what_can_be_read_of_it(head, identity):
    with connected() as (reader, client):
        client.sendall(head)
        assert reader.receive() and reader.head.identity == identity
