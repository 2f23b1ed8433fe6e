"""Exports: columns, formats, windows, names of files, limits and errors."""

import csv
import io
import json
from email.message import Message

import pytest
from django.db import connection, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.domain.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from cdb_rest.models import GlobalTag, PayloadIOV, PayloadList
from cdb_rest.services import export as service
from cdb_rest.services.export import TAKE_SLOT, Form, Selection, export
from tests.builders import Builder

pytestmark = pytest.mark.django_db(transaction=True)

COLUMNS = [
    "payload_type", "payload_url", "checksum", "size", "major_iov", "minor_iov", "major_iov_end", "minor_iov_end", "revision",
]  # fmt: skip
ALWAYS = Interval(Moment(0, 0), AFTER_ALL)
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
    ["Zeta", "z", "abc", 1, 0, 0, 0, 1, None],
    ["gain", "\\.", "null", OPEN, 1, OPEN, 2, 0, "007"],
    ["gain", NASTY, "", 0, 2, 0, OPEN, OPEN, None],
    ["Ärger", "ä", "abc", 1, OPEN, OPEN, OPEN, OPEN, None],
]


@pytest.mark.parametrize("path", ["tag/export", "tag/export/", "tag/export?format=csv&unknown=1"])
def test_csv_has_a_header_and_every_row_in_order(nasty, path):
    response, body = fetch(path)
    assert (response.status_code, response["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert (response["Cache-Control"], response["X-Accel-Buffering"]) == ("no-store", "no")
    assert file_name(response) == "tag.csv"
    rows = list(csv.reader(io.StringIO(body.decode(), newline="")))
    assert rows[0] == COLUMNS
    assert rows[1:] == [["" if value is None else str(value) for value in row] for row in EXPECTED]
    # An empty text is quoted, and null is not.
    assert body.endswith(f"Ärger,ä,abc,1,{OPEN},{OPEN},{OPEN},{OPEN},\n".encode())
    assert f',"",0,2,0,{OPEN},{OPEN},\n'.encode() in body


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


@pytest.mark.parametrize("name", ['a "b" \\ c', "a;b", "50%", "täg", "x'*y"])
def test_the_name_of_the_file_is_that_of_the_tag_whatever_it_has(build, name):
    build.tag(name)
    response = Client().head(
        "/api/cdb_rest/global-tags/" + "".join(f"%{byte:02X}" for byte in name.encode()) + "/export"
    )
    assert response.status_code == 200
    assert file_name(response) == f"{name}.csv"


def test_head_says_the_same_without_running_anything(nasty, settings):
    response, body = fetch("tag/export?format=jsonl", method="HEAD")
    assert (response.status_code, response["Content-Type"], body) == (200, "application/x-ndjson", b"")
    assert not response.has_header("Content-Length")
    assert fetch("nope/export", method="HEAD")[0].status_code == 404


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
        ("payload_type=Elsewhere", 404, "payload_list_not_found"),
    ],
)
def test_wrong_parameters_are_refused(nasty, build, query, status, code):
    build.list(None, "Elsewhere")
    refused(f"tag/export?{query}", status, code)


def test_what_is_not_there_is_404_and_other_methods_405(nasty):
    refused("nope/export", 404, "global_tag_not_found")
    assert fetch("tag/export", method="POST")[0].status_code == 405


def test_protocols_in_which_a_short_body_looks_complete_are_refused(nasty):
    refused("tag/export", 400, "invalid_input", SERVER_PROTOCOL="HTTP/1.0")


def test_more_at_a_time_than_permitted_are_told_to_come_again(nasty, settings):
    settings.CDB_MAX_EXPORTS = 2
    others = [connection.copy() for _ in range(2)]
    try:
        for other in others:
            other.set_autocommit(False)
            with other.cursor() as cursor:
                cursor.execute(TAKE_SLOT, {"slots": 2})
                assert cursor.fetchone() is not None
        assert int(refused("tag/export", 504, "overloaded")["Retry-After"]) > 0
        # Neither what is wrong anyway nor HEAD needs a place.
        refused("nope/export", 404, "global_tag_not_found")
        assert fetch("tag/export", method="HEAD")[0].status_code == 200
        others[0].close()
        assert fetch("tag/export")[0].status_code == 200
    finally:
        for other in others:
            other.close()


def test_an_export_that_is_left_half_way_frees_its_place_and_the_thread_can_go_on(build, settings):
    settings.CDB_MAX_EXPORTS = 1
    payload_list = build.list(build.tag())
    PayloadIOV.objects.bulk_create(
        PayloadIOV(payload_list=payload_list, payload_url="u" * 250, major_iov=major, minor_iov=0)
        for major in range(9000)
    )
    pieces = export(Selection("tag", None, ALWAYS), Form.CSV)
    assert len(next(pieces)) > 100_000
    pieces.close()
    assert GlobalTag.objects.count() == 1
    rows = b"".join(export(Selection("tag", None, ALWAYS), Form.CSV)).count(b"\n")
    assert rows == 9001


def test_a_view_that_fails_has_begun_no_export(nasty, monkeypatch):
    def fail(*_):
        raise RuntimeError

    begun = []
    monkeypatch.setattr("cdb_rest.api.views.export._file_name", fail)
    monkeypatch.setattr("cdb_rest.api.views.export.export", lambda *_: begun.append(1) or iter([b""]))
    refused("tag/export", 500, "internal_error")
    assert begun == []


def test_a_statement_that_takes_too_long_is_504_where_nothing_was_sent_yet(nasty, settings, monkeypatch):
    slow = "COPY (SELECT pg_sleep(5), %(tag_id)s) TO STDOUT"
    monkeypatch.setattr("cdb_rest.services.export.STATEMENTS", {Form.CSV: slow})
    settings.CDB_EXPORT_TIMEOUT_SECONDS = 1
    refused("tag/export", 504, "database_unavailable")
    assert GlobalTag.objects.count() == 2


NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from([10**9, 2**53 + 1, OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
ENDS = st.one_of(MOMENTS, st.just(Moment(OPEN, OPEN)))
LISTS = st.lists(
    st.lists(st.tuples(MOMENTS, ENDS), max_size=6, unique_by=lambda row: row[0]), min_size=1, max_size=3
)  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
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
    try:
        lines = b"".join(export(Selection("tag", None, window), Form.JSONL)).splitlines()
        found = [[*json.loads(line).values()] for line in lines]
        assert [[row[0], *row[4:8]] for row in found] == expected
    finally:
        PayloadIOV.objects.all().delete()
        PayloadList.objects.all().delete()
        GlobalTag.objects.all().delete()


def test_the_rows_stream_by_the_index_whatever_the_statistics_say(build):
    tag = build.tag()
    payload_list = build.list(tag)
    PayloadIOV.objects.bulk_create(
        PayloadIOV(payload_list=payload_list, payload_url="u", major_iov=major, minor_iov=0) for major in range(3000)
    )
    build.list(tag, "Noise")

    def nodes(plan):
        yield plan
        for child in plan.get("Plans", []):
            yield from nodes(child)

    def explain():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0")
            cursor.execute("SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL min_parallel_index_scan_size = 0")
            cursor.execute(service.SETTINGS, {"milliseconds": "1000"})
            values = service._window(ALWAYS) | {"tag_id": tag.id, "payload_type_id": None}
            cursor.execute(f"EXPLAIN (FORMAT JSON) {service.ROWS}", values)
            return cursor.fetchone()[0][0]["Plan"]

    def check():
        plan = explain()
        assert plan["Node Type"] == "Nested Loop"
        outer, inner = plan["Plans"]
        assert inner["Index Name"] == "payload_iov_lookup" and inner["Scan Direction"] == "Backward"
        assert "comb_iov >=" in inner["Index Cond"] and "comb_iov <" in inner["Index Cond"] and "Filter" not in inner
        assert {node["Relation Name"] for node in nodes(outer) if "Relation Name" in node} >= {"PayloadList"}
        assert not any("Gather" in node["Node Type"] for node in nodes(plan))
        assert not any(node["Node Type"] in ("Sort", "Incremental Sort", "Materialize") for node in nodes(inner))

    check()
    with connection.cursor() as cursor:
        cursor.execute('VACUUM (ANALYZE) "PayloadIOV", "PayloadList"')
    check()
