"""Refusal of requests that have waited for too long, by the time at which nginx received them."""

import json
import time

import pytest

from cdb_rest.api import errors
from cdb_rest.observe.request_observer import Observed
from cdb_rest.wsgi import overload
from cdb_rest.wsgi.overload import Overload


@pytest.fixture
def ask(settings):
    """Send a request that nginx received so many seconds ago; returns the status, the headers and the body."""
    settings.CDB_QUEUE_TIMEOUT_SECONDS = 10

    def respond(environ, start_response):
        start_response("200 OK", [])
        return [b"[]"]

    application = Observed(Overload(respond), on_error=errors.respond)

    def ask(waited=None, path="/api/cdb_rest/payloadiovs/"):
        said = []
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "REMOTE_ADDR": "192.0.2.7"}
        if waited is not None:
            environ["HTTP_X_REQUEST_START"] = waited if isinstance(waited, str) else str(time.time() - waited)
        body = b"".join(application(environ, lambda *started: said.append(started)))
        [(status, headers)] = said
        return int(status[:3]), dict(headers), body

    ask.layer = application._application
    return ask


@pytest.mark.parametrize("waited", [None, "", "yesterday", "1e400", 0, 9, -100])
def test_a_request_that_has_waited_for_a_short_time_is_served(ask, waited):
    assert ask(waited)[0] == 200


def test_a_request_that_has_waited_for_too_long_is_refused(ask):
    status, headers, body = ask(11)
    assert status == 504 and headers["Content-Type"] == "application/json" and int(headers["Retry-After"]) > 0
    assert json.loads(body)["code"] == "overloaded"
    assert ask(11, "/health/live")[0] == 200


def test_in_an_overload_waiting_is_shorter(ask, monkeypatch):
    # A burst: for less than ten seconds, all requests have waited.
    assert [ask(5)[0] for _ in range(3)] == [200] * 3
    ask.layer._long_since -= overload.OVERLOAD_SECONDS
    assert [ask(5)[0], ask(2)[0], ask(0.5)[0]] == [504, 504, 200]
    # One that has hardly waited, also long ago, shows that the overload is over.
    assert [ask(0)[0], ask(5)[0]] == [200, 200]
