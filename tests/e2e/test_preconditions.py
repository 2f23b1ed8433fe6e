"""Preconditions of reads through nginx's cache: each route, each state of the cache, each header."""

import http.client
import json

import pytest

from tests.e2e.clients import PREFIX
from tests.e2e.service import JobClient

ROUTES = ("payloadiovs/?gtName={tag}&majorIOV=5&minorIOV=0", "globalTag/{tag}", "gtPayloadLists/{tag}", "globalTags")
OLD, NEW = "Mon, 01 Jan 2001 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
# The header, its value ({etag} is that of the response), and the statuses that the response may have. What is no condition,
# such as an empty one, is not one for the service, and one that fails for nginx. New tags have no Last-Modified to compare with.
CONDITIONS = [
    ("If-Match", '"x"', {412}),
    ("If-Match", "x", {200}),
    ("If-Match", "", {200, 412}),
    ("If-Match", "*", {200}),
    ("If-Match", "{etag}", {200}),
    ("If-Unmodified-Since", OLD, {200, 412}),
    ("If-Unmodified-Since", "", {200, 412}),
    ("If-Unmodified-Since", NEW, {200}),
    ("If-None-Match", "{etag}", {304}),
    ("If-None-Match", '"x"', {200}),
    ("If-Modified-Since", NEW, {200, 304}),
    ("If-Modified-Since", OLD, {200}),
    ("Range", "bytes=0-3", {200}),
    ("If-Range", '"x"', {200}),
]


class Reader:
    """One connection to nginx, and so to one of its processes."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(self, target, **headers):
        self._connection.request("GET", PREFIX + target, headers=headers)
        response = self._connection.getresponse()
        return response.status, response.headers, response.read()


def tag_in(state, client, reader, route, number):
    """The target of a tag whose response nginx's cache has in that state."""
    name = f"{state}{number}"
    assert client.call("POST", f"cloneGlobalTag/tiny/{name}", None)[0] == 200
    if state == "HIT":
        assert client.call("PUT", f"gt_change_status/{name}/frozen", None)[0] == 200
    target = route.format(tag=name)
    if state != "MISS":
        # Each time one of nginx's processes may have to load it first.
        assert {reader.get(target)[0] for _ in range(3)} == {200}
    if state == "EXPIRED":
        assert client.call("PUT", f"gt_change_status/{name}/locked", None)[0] == 200
    return target


@pytest.fixture(scope="module")
def numbers():
    return iter(range(10_000))


# The list of all tags is asked for again each time, so it is never a HIT.
@pytest.mark.parametrize(
    ("state", "route"),
    [
        (state, route)
        for state in ("MISS", "HIT", "EXPIRED", "REVALIDATED")
        for route in ROUTES
        if state != "HIT" or "{tag}" in route
    ],
)
def test_every_condition_is_answered_and_no_process_of_nginx_dies(served, numbers, route, state):
    client, reader = JobClient(served.port), Reader(served.port)
    workers = {process.pid for process in served.programs("nginx: worker")}
    for header, value, expected in CONDITIONS:
        target = tag_in(state, client, reader, route, next(numbers))
        etag = reader.get(target)[1]["ETag"] if "{etag}" in value else ""
        status, headers, body = reader.get(target, **{header: value.format(etag=etag)})
        assert status in expected, (header, value, status, body[:200])
        if status == 200:
            assert body == reader.get(target)[2]
        elif status == 304:
            assert not body
        elif not value:
            # No variable of nginx shows an empty condition. It answers in HTML, and then closes the connection.
            reader = Reader(served.port)
        else:
            assert headers["Content-Type"] == "application/json" and headers["Cache-Control"] == "no-store"
            assert json.loads(body)["code"] == "precondition_failed"
    assert {process.pid for process in served.programs("nginx: worker")} == workers
    assert b"exited on signal" not in (served.data / "serve" / "error.log").read_bytes()
