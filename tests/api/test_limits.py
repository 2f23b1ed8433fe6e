"""Bodies that would need much memory are rejected early: deeply nested, with millions of values, compressed."""

import gzip
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError

from cdb_rest.api.base.json import LEVELS, JSONParser, TooComplexError
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


def depth(value):
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(
    st.recursive(
        st.none() | st.integers(-(2**62), 2**62) | st.text(),
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
        max_leaves=60,
    ),
    st.integers(0, 2 * LEVELS),
)
def test_whatever_is_json_is_read_as_it_is_or_refused_for_its_depth(value, more):
    for _ in range(more):
        value = [value]
    content = json.dumps(value).encode()
    if depth(value) > LEVELS:
        with pytest.raises(TooComplexError):
            parse(content)
    else:
        assert parse(content) == value


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:0123456789eE+-.\\untrefals ', max_size=200).map(str.encode))
def test_whatever_bytes_come_are_read_or_refused(content):
    try:
        parse(content)
    except ParseError as error:
        assert str(error.detail)


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
