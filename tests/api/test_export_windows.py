"""Exports of a window: compared with a model in plain Python, and with what PostgreSQL executes."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdb_rest.exports.export import Form, Selection, export
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from tests.api.cached import insert
from tests.builders import Builder, emptied
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)

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
        lines = b"".join(export(Selection("tag", None, window), Form.JSONL)).splitlines()
        found = [[*json.loads(line).values()] for line in lines]
        assert [[row[0], *row[4:8]] for row in found] == expected


def test_a_window_of_the_past_begins_with_the_row_that_was_valid_then(api, tag):
    def insert_next(url, major):
        row = {"global_tag": "tag", "payload_type": "Gain", "payload_url": url, "checksum": "", "since": [major, 0]}
        api.post("payload-iovs/insert", row | {"until": "next"}).ok()

    def windows(query=""):
        return [api.get(f"global-tags/tag/export?since={major},5{query}").content for major in (0, 2, 3, 4, 6)]

    kept = {}

    def check():
        kept[len(kept) + 3] = windows()
        for revision, found in kept.items():
            assert windows(f"&rev={revision}") == found, (revision, len(kept))

    api.delete("deletePayloadIOV/tag/Gain/1/0").ok()
    check()
    # Rows without an end stay as they are when the next one cuts their area, and are superseded only later.
    for url, major in (("a", 1), ("b", 3), ("c", 5), ("d", 4)):
        insert_next(url, major)
        check()
    for major in (3, 1, 5):
        api.delete(f"deletePayloadIOV/tag/Gain/{major}/0").ok()
        check()
    insert(api, "new", [2, 0])
    check()
    assert len(set(map(tuple, kept.values()))) == len(kept) == 9
