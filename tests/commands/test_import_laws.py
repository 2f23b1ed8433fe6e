"""manage.py import_iovs with random rows: the result is that of a bulk insert."""

import json
from itertools import zip_longest

import pytest
from django.core.management import CommandError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cdb_rest.lookup.model import LookupQuery
from cdb_rest.maintenance.counts import find_incorrect_counts
from cdb_rest.maintenance.repair import find_faults
from cdb_rest.models import GlobalTagStatus, PayloadType
from cdb_rest.rules.errors import CdbError
from cdb_rest.rules.moment import OPEN, Mode, Moment
from cdb_rest.strategies import own
from cdb_rest.writes import imports
from cdb_rest.writes.bulk import insert_payload_iovs
from cdb_rest.writes.global_tags import change_status, create_global_tag
from cdb_rest.writes.insertion import insert_payloads
from tests.builders import Builder, make_statuses
from tests.commands.importing import HEADER, exported, forget_everything, run
from tests.profiles import examples

pytestmark = pytest.mark.django_db(transaction=True)
NUMBERS = st.one_of(st.integers(0, 5), st.sampled_from([10**9, 2**53 + 1, OPEN - 1, OPEN]))
MOMENTS = st.builds(Moment, NUMBERS, NUMBERS)
TYPES = st.sampled_from(["Gain", "alpha", "Élan"])
WRITES = st.lists(st.tuples(TYPES, MOMENTS, MOMENTS, st.sampled_from(["closed", "open", "next"])), max_size=15)
PATHS = st.sampled_from([None, 1, 3, 100])
PROPERTY = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


@pytest.fixture
def either_way(monkeypatch, settings):
    """Sets the mode and which way rows take: all of an empty list by one statement, or some at once by the rule."""

    is_empty, rows_at_once = imports._is_empty, imports.ROWS_AT_ONCE

    def choose(mode, size):
        settings.CDB_IOV_MODE = mode.value
        monkeypatch.setattr(imports, "ROWS_AT_ONCE", size or rows_at_once)
        monkeypatch.setattr(imports, "_is_empty", (lambda _: False) if size else is_empty)

    yield choose


def answers(tag, moments, mode):
    """Which payloads are valid at these moments, and the rows that lookups answer without asking for that."""
    return [
        [
            [row[:4] + row[8:] for row in _rows(LookupQuery(tag, Moment(*moment), only_valid, False, mode))]
            for only_valid in (True, False)
        ]
        for moment in moments
    ]


def _rows(query):
    return json.loads(own.run(query))


def interesting(rows):
    found = {(0, 0), (OPEN, OPEN)}
    for start, end in rows:
        for major, minor in (start, end):
            found |= {(major, max(minor - 1, 0)), (major, minor), (major, min(minor + 1, OPEN))}
    return sorted(found)


# An open row before a closed one, which in the other order would be split by it.
OPEN_BEFORE_CLOSED = [("Gain", Moment(3, 0), Moment(4, 0), "closed"), ("Gain", Moment(1, 0), Moment(2, 0), "next")]


@example(writes=OPEN_BEFORE_CLOSED, mode=Mode.CONTINUOUS, size=100, extra=[])
@example(writes=OPEN_BEFORE_CLOSED, mode=Mode.DISCRETE, size=1, extra=[])
@PROPERTY
@given(writes=WRITES, mode=st.sampled_from(Mode), size=PATHS, extra=st.lists(MOMENTS, max_size=5))
def test_an_exported_file_is_imported_byte_for_byte(either_way, writes, mode, size, extra):
    either_way(mode, size)
    make_statuses()
    for kind in ("Gain", "alpha", "Élan"):
        PayloadType.objects.create(name=kind)
    create_global_tag(name="source", status="unlocked")
    for number, (kind, start, end, until) in enumerate(writes):
        end = end if until == "closed" else Moment(OPEN, OPEN)
        row = {
            "global_tag": "source",
            "payload_type": kind,
            "payload_url": f"{number}",
            "checksum": "" if number % 2 else "a",
            "size": number,
            "extra": None if number % 3 else "0",
            "since_only": until == "next",
            "major_iov": start.major,
            "minor_iov": start.minor,
            "major_iov_end": end.major,
            "minor_iov_end": end.minor,
        }
        try:
            insert_payloads(rows=[row])
        except CdbError:
            continue
    try:
        content = exported("source")
        run(content, tag="target")
        assert exported("target") == content
        moments = [*interesting((start, end) for _, start, end, _ in writes), *extra]
        assert answers("target", moments, mode) == answers("source", moments, mode)
        assert find_incorrect_counts() == [] and find_faults(global_tag="target") == []
    finally:
        forget_everything()


def trimmed(rows):
    """The rows by start, each up to the next one at most where it has an end."""
    rows = sorted(rows)
    return [
        (start, end if end == (OPEN, OPEN) or not following else min(end, following[0]))
        for (start, end), following in zip_longest(rows, rows[1:])
    ]


SMALL = st.builds(Moment, st.integers(0, 12), st.integers(0, 1))
SOME_ROWS = st.lists(
    st.tuples(SMALL, st.one_of(SMALL, st.just(Moment(OPEN, OPEN)))).filter(lambda row: row[0] < row[1]),
    max_size=6,
    unique_by=lambda row: row[0],
)


@example(
    stored=[(Moment(5, 0), Moment(OPEN, OPEN))],
    rows=[(Moment(n, 0), Moment(OPEN, OPEN)) for n in (7, 8, 9, 10)],
    status="locked",
    mode=Mode.CONTINUOUS,
    size=2,
)
@settings(PROPERTY, max_examples=examples(150))
@given(
    stored=SOME_ROWS,
    rows=SOME_ROWS,
    status=st.sampled_from(["unlocked", "locked", "online"]),
    mode=st.sampled_from(Mode),
    size=st.sampled_from([1, 2, 3, 100]),
)
def test_an_import_is_taken_or_refused_as_by_bulk_and_leaves_the_same(either_way, stored, rows, status, mode, size):
    either_way(mode, size)
    # In discrete mode the ends are the last moments inside.
    rows = [(a, b if mode is Mode.CONTINUOUS or b.major == OPEN else before(b)) for a, b in trimmed(rows)]
    lines = [f"Gain,u{a},,0,{a.major},{a.minor},{b.major},{b.minor},\n".replace(", ", " ") for a, b in rows]
    try:
        make_statuses()
        GlobalTagStatus.objects.get_or_create(name="online")
        build = Builder()
        lists = {name: build.list(build.tag(name)) for name in ("imported", "sent")}
        for name, payload_list in lists.items():
            for start, end in stored:
                build.iov(payload_list, start, end, url=f"stored {start}")
            change_status(name=name, status=status)
        sent = [bulk_row(lists["sent"], *row) for row in reversed(rows)]
        is_taken = succeeds(CdbError, lambda: insert_payload_iovs(rows=sent))
        assert succeeds(CommandError, lambda: run(HEADER + "".join(lines), tag="imported")) is is_taken
        assert exported("imported") == exported("sent")
        assert find_incorrect_counts() == []
    finally:
        forget_everything()


def bulk_row(payload_list, start, end):
    return {
        "payload_list": payload_list.name,
        "payload_url": f"u{start}".replace(", ", " "),
        "checksum": "",
        "size": 0,
        "extra": None,
        "major_iov": start.major,
        "minor_iov": start.minor,
        "major_iov_end": end.major,
        "minor_iov_end": end.minor,
    }


def succeeds(error, call):
    try:
        call()
    except error:
        return False
    return True


def before(moment):
    """The last moment before this one."""
    return Moment(moment.major, moment.minor - 1) if moment.minor else Moment(moment.major - 1, OPEN)
