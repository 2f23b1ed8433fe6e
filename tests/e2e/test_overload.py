"""Overload: each client gets a response in time, either the result or a 504 in JSON."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from tests.e2e.faults import LOOKUP, occupied
from tests.e2e.service import JobClient, raw

REQUEST = f"GET /api/cdb_rest/{LOOKUP} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_a_request_that_waits_too_long_for_a_thread_is_told_to_come_again(small):
    connection = http.client.HTTPConnection("127.0.0.1", small.port, timeout=10)
    with occupied(small):
        for method, body in (("GET", None), ("POST", b'{"name": "Refused"}' * 10_000), ("HEAD", None), ("GET", None)):
            begin = time.monotonic()
            connection.request(method, "/api/cdb_rest/pt", body)
            own = connection.sock
            response = connection.getresponse()
            content = response.read()
            assert response.status == 504
            assert response.getheader("Content-Type") == "application/json"
            assert 1 <= int(response.getheader("Retry-After")) <= 60
            assert method == "HEAD" or json.loads(content)["code"] == "overloaded"
            assert 0.9 < time.monotonic() - begin < 5
            # The connection is kept, so the one that comes again needs no new one.
            assert connection.sock is own
    connection.request("GET", f"/api/cdb_rest/{LOOKUP}")
    assert connection.getresponse().status == 200
    names = [one["name"] for one in JobClient(small.port).get("pt")]
    assert "Occupying0" in names and "Refused" not in names


def test_all_of_very_many_are_told(small):
    def ask(_):
        return JobClient(small.port).call("GET", LOOKUP)

    with occupied(small), ThreadPoolExecutor(100) as pool:
        begin = time.monotonic()
        answers = list(pool.map(ask, range(300)))
        assert {(status, body["code"]) for status, body in answers} == {(504, "overloaded")}
        assert time.monotonic() - begin < 20


def test_a_connection_without_a_request_is_not_rejected(small):
    with occupied(small), socket.create_connection(("127.0.0.1", small.port), timeout=30) as connection:
        time.sleep(3)
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(10)
        connection.sendall(REQUEST)
        assert b"overloaded" in connection.recv(65536)


def test_thousands_of_connections_are_all_served_in_constant_memory(fresh):
    service = fresh(CDB_WORKERS="1", CDB_THREADS="2", CDB_QUEUE_TIMEOUT_SECONDS="60").start()
    raw(service.port, REQUEST)
    worker = max(service.programs("gunicorn"), key=lambda process: process.create_time())
    before = memory(worker)
    for _ in range(3):
        connections = []
        try:
            for _ in range(1500):
                connections.append(socket.create_connection(("127.0.0.1", service.port), timeout=60))
                connections[-1].sendall(REQUEST)
            assert memory(worker) - before < 60 << 20
            for connection in connections:
                response = http.client.HTTPResponse(connection)
                response.begin()
                assert (response.status, len(json.loads(response.read()))) == (200, 10)
        finally:
            for connection in connections:
                connection.close()
    assert memory(worker) - before < 60 << 20


def bulk(service, number, rows):
    """The body of a bulk insert into a payload list of its own."""
    client = JobClient(service.port)
    assert client.call("POST", "pt", {"name": f"Bulk{number}"})[0] == 200
    _, payload_list = client.call("POST", "pl", {"payload_type": f"Bulk{number}"})
    row = {"payload_url": "x" * 100, "checksum": "y" * 32, "payload_list": payload_list["name"], "minor_iov": 0}
    return [row | {"major_iov": major} for major in range(rows)]


def test_large_bodies_wait_for_each_other_and_hold_no_thread(fresh):
    """Six of 2 MB, of which 5 MB may be worked on at a time. That takes 90 MB; all at once took 250."""
    service = fresh(CDB_WORKERS="1", CDB_THREADS="6", CDB_MAX_BODY_BYTES="5000000").start()
    bodies = [bulk(service, number, 10_000) for number in range(6)]
    assert len(json.dumps(bodies[0])) > 2_000_000
    worker = max(service.programs("gunicorn"), key=lambda process: process.create_time())
    with ThreadPoolExecutor(6) as pool:
        before = most = memory(worker)
        answers = [pool.submit(JobClient(service.port).call, "POST", "bulk_piov", body) for body in bodies]
        while not all(answer.done() for answer in answers):
            most = max(most, memory(worker))
            assert len(JobClient(service.port).get(LOOKUP)) == 10
            time.sleep(0.02)
    assert [answer.result()[0] for answer in answers] == [200] * 6
    assert most - before < 150 << 20, most - before
    # Given back soon, but for what the C library can't return.
    deadline = time.monotonic() + 60
    while memory(worker) - before > 90 << 20:
        assert time.monotonic() < deadline, memory(worker) - before
        time.sleep(0.2)


def test_a_client_that_goes_on_after_a_large_body_does_not_keep_others_from_theirs(fresh):
    service = fresh(CDB_WORKERS="1", CDB_THREADS="4", CDB_MAX_BODY_BYTES="3000000").start()
    bodies = [bulk(service, number, 10_000) for number in range(2)]
    kept, done = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60), threading.Event()

    def go_on():
        statuses = set()
        kept.request("POST", "/api/cdb_rest/bulk_piov", json.dumps(bodies[0]), {"Content-Type": "application/json"})
        while True:
            response = kept.getresponse()
            response.read()
            statuses.add(response.status)
            if done.is_set():
                return statuses
            kept.request("GET", f"/api/cdb_rest/{LOOKUP}")

    with ThreadPoolExecutor(1) as pool:
        going_on = pool.submit(go_on)
        assert JobClient(service.port).call("POST", "bulk_piov", bodies[1])[0] == 200
        done.set()
        assert going_on.result() == {200}
    kept.close()


def memory(process: psutil.Process) -> int:
    """Bytes of memory that are the process's own."""
    return process.memory_full_info().uss


def test_a_client_that_keeps_its_connection_delays_no_other_client(fresh):
    service = fresh(CDB_WORKERS="1", CDB_THREADS="2").start()
    closing = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    kept = []
    begin = time.monotonic()
    for _ in range(20):
        kept.append(socket.create_connection(("127.0.0.1", service.port), timeout=10))
        kept[-1].sendall(closing)
        assert b"200 OK" in kept[-1].recv(65536)
    assert JobClient(service.port).call("GET", LOOKUP)[0] == 200
    # Waiting two seconds for each of them, as gunicorn would, takes 40.
    assert time.monotonic() - begin < 15
    for connection in kept:
        connection.close()


def test_headers_and_body_of_a_small_answer_come_in_one_piece(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        for _ in range(20):
            connection.sendall(REQUEST)
            piece = connection.recv(65536)
            head, _, body = piece.partition(b"\r\n\r\n")
            assert b"200 OK" in head and len(json.loads(body)) == 10
