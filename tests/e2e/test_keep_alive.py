"""Persistent connections: they must not occupy threads that other clients need."""

import http.client
import socket
import threading
import time

LOOKUP = "/api/cdb_rest/payloadiovs/?gtName=tiny&majorIOV=5&minorIOV=0"


def ask(connection):
    connection.request("GET", LOOKUP)
    response = connection.getresponse()
    return response.status, len(response.read())


def test_a_connection_serves_requests_in_quick_and_in_slow_succession(service):
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
    answers = [ask(connection) for _ in range(200)]
    for pause in (0.001, 0.004, 0.006, 0.05, 1):
        time.sleep(pause)
        answers.append(ask(connection))
    own = connection.sock
    assert len(set(answers)) == 1 and answers[0][0] == 200
    assert own is connection.sock, "the connection was closed in between"
    connection.close()


def test_pipelined_requests_are_all_answered_in_order(service):
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        paths = [LOOKUP, "/health/live", LOOKUP + "&shape=dict", "/nowhere"]
        last = len(paths) - 1
        connection.sendall(
            b"".join(
                b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
                % (path.encode(), b"Connection: close\r\n" if number == last else b"")
                for number, path in enumerate(paths)
            )
        )
        received = b""
        while piece := connection.recv(65536):
            received += piece
    lines = [line for line in received.split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [line[-6:] for line in lines] == [b"200 OK", b"200 OK", b"200 OK", b" Found"]


def test_busy_connections_do_not_starve_new_ones(fresh):
    service = fresh(CDB_WORKERS="1", CDB_THREADS="2").start()
    ended = threading.Event()

    def be_busy():
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        while not ended.is_set():
            assert ask(connection)[0] == 200

    busy = [threading.Thread(target=be_busy) for _ in range(6)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(30):
            assert ask(http.client.HTTPConnection("127.0.0.1", service.port, timeout=10))[0] == 200
    finally:
        ended.set()
        for thread in busy:
            thread.join()
    service.stop()
    assert service.family() == []
