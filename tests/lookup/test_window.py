"""The window of a result, compared with a model that compares the results at all moments."""

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from cdb_rest.lookup.model import LookupQuery
from cdb_rest.lookup.queries import look_up_here
from cdb_rest.rules.moment import AFTER_ALL, OPEN, Interval, Mode, Moment
from cdb_rest.strategies import implementations
from tests.builders import Builder
from tests.lookup.test_oracle import LISTS, MOMENTS, TYPE_NAMES, expected
from tests.plans import vacuum
from tests.profiles import examples

pytestmark = pytest.mark.django_db


def successor(moment):
    """The next moment there is; after the last one the end of all."""
    major, minor = moment
    return Moment(major, minor + 1) if minor < OPEN else Moment(major + 1, 0)


def changes(lists, only_valid, mode):
    """The moments at which the answer differs from that at the moment before, in their order."""
    candidates = set()
    for rows in lists:
        for (start, end), _ in rows:
            candidates |= {Moment(*start), Moment(*end), successor(end)}
    found, previous = [], expected(lists, (0, 0), only_valid, mode)
    for candidate in sorted(candidates - {Moment(0, 0), AFTER_ALL}):
        answer = expected(lists, candidate, only_valid, mode)
        if answer != previous:
            found.append(candidate)
        previous = answer
    return found


def naive_window(lists, moment, only_valid, mode):
    edges = changes(lists, only_valid, mode)
    since = max((edge for edge in edges if edge <= moment), default=Moment(0, 0))
    return Interval(since, min((edge for edge in edges if edge > moment), default=AFTER_ALL))


def fill(lists):
    build = Builder()
    tag, decoy = build.tag(), build.tag("decoy")
    for name, rows in zip(TYPE_NAMES, lists, strict=False):
        payload_list, other = build.list(tag, name), build.list(decoy, name)
        for (start, end), revision in rows:
            build.iov(payload_list, start, end, url=f"{name}@{start}", checksum="sum", size=7, extra=revision)
        build.iov(other, (2, 2), (3, 3))


@settings(max_examples=examples(150))
@given(lists=LISTS, extra=MOMENTS, only_valid=st.booleans(), mode=st.sampled_from(Mode), by_index=st.booleans())
def test_the_window_is_the_largest_interval_with_the_same_answer(lists, extra, only_valid, mode, by_index):
    moments = {(0, 0), (OPEN, OPEN), extra}
    for rows in lists:
        for (start, end), _ in rows:
            moments |= {start, end, (end[0], max(end[1] - 1, 0)), (start[0], max(start[1] - 1, 0))}
    with transaction.atomic():
        fill(lists)
        if by_index:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL enable_sort = off")
        for moment in sorted(moments):
            query = LookupQuery("tag", Moment(*moment), only_valid, mode=mode)
            found = look_up_here(query, with_window=True)
            assert found.window == naive_window(lists, Moment(*moment), only_valid, mode), moment
            # The moment that stands for the window has the same answer.
            canonical = LookupQuery("tag", found.window.start, only_valid, mode=mode)
            assert implementations.look_up_by_function(canonical) == found.text
        transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
def test_the_window_is_found_by_index_alone(large_tag):
    def reads():
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT seq_scan, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'PayloadIOV'")
        of_table = cursor.fetchone()
        cursor.execute("SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'payload_iov_lookup'")
        return (*of_table, *cursor.fetchone())

    vacuum("PayloadIOV", "PayloadList")
    with connection.cursor() as cursor:
        before = reads()
        cursor.execute("SELECT * FROM cdb_window('tag', 2500, 7, false, false)")
        assert cursor.fetchone() == (2500, 2501)
        scans, fetches, entries = (now - then for now, then in zip(reads(), before, strict=True))
    assert (scans, fetches) == (0, 0)
    # For each of two lists the row in force and the two starts after the moment.
    assert 0 < entries <= 6
