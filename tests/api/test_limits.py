"""Bodies that would need much memory are rejected early: deeply nested, with millions of values, compressed."""

import gzip
import json
import tracemalloc

import pytest

from cdb_rest.api.base.json import JSONParser, TooComplexError
from tests.api.helpers import WRITES


class Body:
    def __init__(self, content):
        self._content = content

    def read(self):
        return self._content


class Rows:
    takes_rows = True


def parse(content, view=None):
    return JSONParser().parse(Body(content), parser_context={"view": view})


def nested(levels, kind):
    opening, closing = {"array": (b"[", b"]"), "object": (b'{"a":', b"}"), "both": (b'[{"a":', b"}]")}[kind]
    count = levels // 2 if kind == "both" else levels
    return opening * count + b"1" + closing * count


@pytest.mark.parametrize("kind", ["array", "object", "both"])
@pytest.mark.parametrize("levels", [1000, 100_000, 2_000_000])
@pytest.mark.parametrize(("method", "path"), [("POST", "bulk_piov"), ("POST", "gt"), ("PUT", "pl_attach")])
def test_deep_bodies_are_refused_whatever_their_depth(db, api, method, path, levels, kind):
    error = api(method, path, raw=nested(levels, kind)).error(400)
    assert error["code"] in ("body_too_complex", "invalid_json")


@pytest.mark.parametrize("filling", [b"{},", b"[],", b"0,"])
def test_millions_of_values_are_refused_before_they_are_made(settings, filling):
    content = b"[" + filling * (settings.CDB_MAX_BODY_BYTES // len(filling) - 1) + b"0]"
    tracemalloc.start()
    with pytest.raises(TooComplexError):
        parse(content, Rows())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Millions of values would take hundreds of megabytes. Other threads of the tests take some kilobytes.
    assert most < 100_000


def test_the_largest_bulk_fits(settings):
    row = {
        "payload_url": "file," * 4,
        "payload_list": "list_1",
        "checksum": "c",
        "size": 1,
        "revision": "1",
        "major_iov": 1,
        "minor_iov": 1,
        "major_iov_end": 2,
        "minor_iov_end": 2,
        "comment": "one, two",
    }
    assert len(parse(json.dumps([row] * settings.CDB_MAX_BULK_ROWS).encode(), Rows())) == settings.CDB_MAX_BULK_ROWS


@pytest.mark.parametrize(("method", "path"), WRITES)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "GZIP, identity"])
def test_compressed_bodies_are_refused(db, api, method, path, coding):
    body = gzip.compress(b'{"name": "n", "status": "unlocked"}')
    headers = {"Content-Encoding": coding}
    api(method, path, raw=body, **headers).error(415, "unsupported_media_type")


def test_a_form_of_a_million_fields_is_refused_at_once(db, client):
    answer = client.post("/admin/login/", "a&" * 1_000_000, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 400 and answer.json()["code"] == "bad_request"
