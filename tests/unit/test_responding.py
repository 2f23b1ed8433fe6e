"""Responses to requests that cannot be parsed, and to those whose application fails."""

import json
import threading

import pytest
from gunicorn.config import Config

from cdb.worker.connection import Connection
from cdb.worker.limits import Limits
from cdb.worker.responding import RespondingWorker
from cdb_rest.metrics import counts
from cdb_rest.metrics.values import Buckets
from cdb_rest.wsgi.instrumentation import Instrumented
from tests.unit.worker_sockets import connected


class Log:
    """Notes what gunicorn's logger is told."""

    def __init__(self):
        self.said, self.accessed = [], []

    def access(self, response, request, _environ, _duration):
        self.accessed.append((request.uri, response.status))

    def warning(self, message, *values):
        self.said.append(message % values)

    exception = warning

    def debug(self, *_):
        """Not noted."""


@pytest.fixture
def respond():
    """Sends a request to an application, by a worker: returns status line, document, and the log."""

    def respond(sent, application):
        worker = RespondingWorker(1, 1, [], None, 30, Config(), log := Log())
        worker.wsgi = Instrumented(application, [])
        worker._limits, worker._thread = Limits(1), threading.local()
        worker._waited, worker._refused = Buckets(counts.QUEUE.labels("all")), counts.QUEUE_TIMEOUTS.labels("all")
        with connected() as (reader, client):
            client.sendall(sent)
            assert reader.receive()
            conn = Connection(worker.cfg, reader.sock, ("127.0.0.1", 1), ("127.0.0.1", 2), reader)
            conn.init()
            assert worker.handle(conn) is False
            head, _, body = client.recv(10_000).partition(b"\r\n\r\n")
        return head.split(b"\r\n")[0].decode(), json.loads(body), log

    return respond


def fail(_environ, _start_response):
    raise ValueError("a bug")


def name_a_header_wrongly(_environ, start_response):
    start_response("200 OK", [("no header", "x")])
    return [b"never sent"]


@pytest.mark.parametrize("application", [fail, name_a_header_wrongly])
def test_an_application_that_fails_is_500_with_a_line_in_both_logs(respond, application):
    line, document, log = respond(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n", application)
    assert (line, document["code"]) == ("HTTP/1.1 500 Internal Server Error", "internal_error")
    assert log.said[0] == "Error handling request GET /x"
    assert log.accessed == [("/x", "500 Internal Server Error")]


def test_a_request_that_can_not_be_parsed_is_400_and_does_not_reach_the_application(respond):
    line, document, log = respond(b"GET /x HTTP/1.1\r\nbroken header\r\n\r\n", fail)
    assert (line, document["code"]) == ("HTTP/1.1 400 Bad Request", "malformed_request")
    assert log.said == ["Invalid request from ip=127.0.0.1: Invalid HTTP Header: 'broken header'"]
    assert log.accessed == []
