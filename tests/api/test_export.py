"""Exports: columns, formats, windows, names of files, limits and errors."""

import csv
import io
import json
from email.message import Message

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.exports.export import Form, Selection, export
from cdb_rest.models import GlobalTag
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from tests.builders import Builder, emptied
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)

COLUMNS = [
    "payload_type", "payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end",
    "revision", "mode",
]  # fmt: skip

NASTY = 'a "quoted", \\ \\. \\n back\nline\r\ttab \x01\x02 é 𝄞'


def fetch(path, method="GET", **headers):
    response = Client(raise_request_exception=False).generic(method, f"/api/cdb_rest/global-tags/{path}", **headers)
    return response, b"".join(response) if response.streaming else response.content


def refused(path, status, code, **headers):
    response, body = fetch(path, **headers)
    assert (response.status_code, response["Content-Type"]) == (status, "application/json"), body
    document = json.loads(body)
    assert document["code"] == code and document["detail"]
    return response


def file_name(response):
    message = Message()
    message["Content-Disposition"] = response["Content-Disposition"]
    assert message.get_content_disposition() == "attachment"
    return message.get_filename()


@pytest.fixture
def nasty(build):
    tag = build.tag()
    gain, umlaut = build.list(tag, "gain"), build.list(tag, "Ärger")
    build.list(tag, "Empty")
    build.iov(gain, (2, 0), url=NASTY, checksum="", size=0, extra=None)
    build.iov(gain, (1, OPEN), (2, 0), url="\\.", checksum="null", size=OPEN, extra="007")
    build.iov(umlaut, (OPEN, OPEN), url="ä")
    build.iov(build.list(tag, "Zeta"), (0, 0), (0, 1), url="z")
    build.iov(build.list(build.tag("other"), "gain"), (0, 0))


EXPECTED = [
    ["Zeta", "z", "abc", 1, 0, 0, 0, 1, None, "continuous"],
    ["gain", "\\.", "null", OPEN, 1, OPEN, 2, 0, "007", "continuous"],
    ["gain", NASTY, "", 0, 2, 0, OPEN, OPEN, None, "continuous"],
    ["Ärger", "ä", "abc", 1, OPEN, OPEN, OPEN, OPEN, None, "continuous"],
]


@pytest.mark.parametrize("path", ["tag/export", "tag/export/", "tag/export?format=csv"])
def test_csv_has_a_header_and_every_row_in_order(nasty, path):
    response, body = fetch(path)
    assert (response.status_code, response["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert (response["Cache-Control"], response["X-Accel-Buffering"]) == ("no-store", "no")
    assert file_name(response) == "tag.csv"
    rows = list(csv.reader(io.StringIO(body.decode(), newline="")))
    assert rows[0] == COLUMNS
    assert rows[1:] == [["" if value is None else str(value) for value in row] for row in EXPECTED]
    # An empty text is quoted, and null is not.
    assert body.endswith(f"Ärger,ä,abc,1,{OPEN},{OPEN},{OPEN},{OPEN},,continuous\n".encode())
    assert f',"",0,2,0,{OPEN},{OPEN},,continuous\n'.encode() in body


def test_jsonl_has_an_object_on_each_line(nasty):
    response, body = fetch("tag/export?format=jsonl")
    assert (response.status_code, response["Content-Type"]) == (200, "application/x-ndjson")
    assert file_name(response) == "tag.jsonl"
    rows = [json.loads(line) for line in body.decode().removesuffix("\n").split("\n")]
    assert [list(row) for row in rows] == [COLUMNS] * 4
    assert [list(row.values()) for row in rows] == EXPECTED


def test_one_payload_type_alone(nasty):
    response, body = fetch("tag/export?payload_type=Ärger&format=jsonl")
    assert [json.loads(line)["payload_url"] for line in body.splitlines()] == ["ä"]
    assert file_name(response) == "tag-Ärger.jsonl"
    response, body = fetch("tag/export?payload_type=Empty")
    assert body.decode() == ",".join(COLUMNS) + "\n"
    response, body = fetch("tag/export?payload_type=Empty&format=jsonl")
    assert (response.status_code, body) == (200, b"")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("format=xml", 400, "invalid_input"),
        ("format=", 400, "invalid_input"),
        ("since=5", 400, "invalid_input"),
        ("since=", 400, "invalid_input"),
        ("since=5,0,1", 400, "invalid_input"),
        ("since=-1,0", 400, "invalid_input"),
        ("since=a,b", 400, "invalid_input"),
        (f"until=0,{2**63}", 400, "invalid_input"),
        ("since=5,0&until=5,0", 400, "invalid_input"),
        ("since=5,0&until=4,9", 400, "invalid_input"),
        ("payload_type=", 400, "invalid_input"),
        ("payload_type=Zeta&payload_type=", 400, "invalid_input"),
        ("payload_type=nope", 404, "payload_type_not_found"),
        ("payload_type=Elsewhre", 404, "payload_type_not_found"),
    ],
)
def test_wrong_parameters_are_refused(nasty, build, query, status, code):
    build.list(None, "Elsewhere")
    refused(f"tag/export?{query}", status, code)


def test_a_missing_tag_is_404_and_other_methods_are_405(nasty):
    refused("nope/export", 404, "global_tag_not_found")
    assert fetch("tag/export", method="POST")[0].status_code == 405


def test_a_statement_that_takes_too_long_is_504_where_nothing_was_sent_yet(nasty, settings, monkeypatch):
    slow = "COPY (SELECT pg_sleep(5), %(mode)s) TO STDOUT"
    monkeypatch.setattr("cdb_rest.exports.export.STATEMENTS", {Form.CSV: slow})
    settings.CDB_EXPORT_TIMEOUT_SECONDS = 1
    refused("tag/export", 504, "database_unavailable")
    assert GlobalTag.objects.count() == 2


NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from([10**9, 2**53 + 1, OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
ENDS = st.one_of(MOMENTS, st.just(Moment(OPEN, OPEN)))
LISTS = st.lists(st.lists(st.tuples(MOMENTS, ENDS), max_size=6, unique_by=lambda row: row[0]), min_size=1, max_size=3)


@settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
@given(lists=LISTS, since=MOMENTS, until=ENDS, mode=st.sampled_from(Mode))
def test_a_window_has_the_rows_that_are_valid_somewhere_in_it(settings, lists, since, until, mode):
    settings.CDB_IOV_MODE = mode.value
    window = Interval.from_wire(since, until, mode)
    if window.is_empty:
        return
    build = Builder()
    tag = build.tag()
    expected = []
    for number, rows in enumerate(lists):
        payload_list = build.list(tag, f"type {number}")
        rows = sorted(row for row in rows if not Interval.from_wire(*row, mode).is_empty)
        for place, (start, end) in enumerate(rows):
            build.iov(payload_list, start, end)
            own = Interval.from_wire(start, end, mode)
            # The latest start wins, so a row is valid up to the next one at most.
            following = rows[place + 1][0] if place + 1 < len(rows) else AFTER_ALL
            if Interval(start, min(own.end, following)).overlaps(window):
                expected.append([f"type {number}", *start, *end])
    with emptied():
        lines = b"".join(export(Selection("tag", (), window), Form.JSONL)).splitlines()
        found = [[*json.loads(line).values()] for line in lines]
        assert [[row[0], *row[4:8]] for row in found] == expected
