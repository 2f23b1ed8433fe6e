"""The limits on the number of requests in a process, and on those that may be passed to a thread."""

from types import SimpleNamespace

import pytest

from cdb.worker import limits
from cdb.worker.limits import Limits
from cdb_rest.metrics.slots import here

MEGABYTE = 1024 * 1024
THREADS = 4


@pytest.fixture
def clock(monkeypatch):
    """The time, to be set as its attribute `now`, of a process that takes 16 MB of large bodies."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(limits, "monotonic", lambda: clock.now)
    monkeypatch.setattr(limits, "MOST_BYTES", 16 * MEGABYTE)
    return clock


@pytest.fixture
def limits_of(monkeypatch, clock):
    """Makes the limits of a process of a pool."""

    def make(pool):
        monkeypatch.setattr(here, "pool", pool)
        return Limits(THREADS)

    return make


class Request:
    """A connection with a complete request, as far as its limits look at it."""

    def __init__(self, clock, megabytes=0, reads=False, address="10.0.0.1"):
        self.reader = SimpleNamespace(size=megabytes * MEGABYTE, head=SimpleNamespace(is_long_read=reads))
        self.address, self.waits_since = address, clock.now


@pytest.mark.parametrize("pool", ["all", "others"])
def test_large_requests_are_admitted_in_order_while_there_is_room(clock, limits_of, pool):
    kept = limits_of(pool)
    first, second, third, small = (Request(clock, size, address=f"10.0.0.{size}") for size in (10, 8, 2, 0))
    assert [kept.admit(one) for one in (first, second, third, small)] == [True, False, False, True]
    assert kept.release(first) == [second, third]
    assert kept.release(second) == kept.release(third) == kept.release(small) == []


def test_a_request_behind_one_that_has_waited_too_long_is_admitted(clock, limits_of):
    kept = limits_of("all")
    running, too_large = Request(clock, 8), Request(clock, 16)
    assert kept.admit(running) and not kept.admit(too_large)
    clock.now = limits.LARGE_QUEUE_SECONDS
    behind = Request(clock, 2)
    assert not kept.admit(behind)
    clock.now += 1
    assert kept.overdue() == [too_large]
    last = Request(clock, 2)
    assert not kept.admit(last)
    assert kept.release(running) == [behind, last]
    assert kept.release(behind) == kept.release(last) == []
    assert kept.admit(Request(clock, 16))


@pytest.mark.parametrize("pool", ["all", "others"])
def test_long_reads_leave_a_thread_to_others(clock, limits_of, pool):
    kept = limits_of(pool)
    reads = [Request(clock, reads=True, address=f"10.0.0.{number}") for number in range(6)]
    assert [kept.admit(one) for one in reads] == [True] * 3 + [False] * 3
    assert kept.admit(Request(clock))
    assert kept.release(reads[0]) == [reads[3]]
    clock.now = limits.QUEUE_SECONDS + 1
    assert kept.overdue() == reads[4:]
    assert kept.release(reads[1]) == []


def test_short_reads_of_the_pool_for_lookups_are_not_held(clock, limits_of):
    kept = limits_of("lookups")
    assert all(kept.admit(Request(clock, reads=True)) for _ in range(10))


def test_an_address_leaves_a_thread_to_others(clock, limits_of):
    kept = limits_of("others")
    writes = [Request(clock) for _ in range(5)]
    assert [kept.admit(one) for one in writes] == [True] * 3 + [False] * 2
    other = Request(clock, address="10.0.0.2")
    assert kept.admit(other) and kept.is_counted(other)
    assert kept.release(other) == []
    assert kept.release(writes[2]) == [writes[3]]
    # Alone, in `make run`, it is not limited.
    assert all(limits_of("all").admit(Request(clock)) for _ in range(10))


def test_an_address_has_half_of_all_requests(clock, limits_of):
    kept = limits_of("others")
    requests = [Request(clock) for _ in range(100)]
    may_queue = [kept.may_queue(one) for one in requests]
    assert may_queue == [True] * 64 + [False] * 36
    assert kept.may_queue(Request(clock, address="10.0.0.2"))
    kept.release(requests[0])
    assert kept.may_queue(Request(clock)) and not kept.may_queue(Request(clock))
