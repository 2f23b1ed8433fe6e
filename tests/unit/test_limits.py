"""How many requests a process takes at a time."""

from types import SimpleNamespace

import pytest

from cdb.worker import limits
from cdb.worker.limits import Limits

MEGABYTE = 1024 * 1024


@pytest.fixture
def clock(monkeypatch):
    """The time, to be set as its attribute `now`, of a process that takes 16 MB of large bodies."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(limits, "monotonic", lambda: clock.now)
    monkeypatch.setattr(limits, "MOST_BYTES", 16 * MEGABYTE)
    return clock


def connection(clock, megabytes):
    return SimpleNamespace(
        reader=SimpleNamespace(size=megabytes * MEGABYTE), waits_since=clock.now, admitted_bytes=0, queued_as=None
    )


def test_large_requests_are_admitted_in_order_while_there_is_room(clock):
    kept = Limits(4)
    first, second, third, small = (connection(clock, size) for size in (10, 8, 2, 0))
    assert [kept.admit(one) for one in (first, second, third, small)] == [[first], [], [], [small]]
    assert kept.release(first) == [second, third]
    assert kept.release(second) == kept.release(third) == []


def test_a_request_behind_one_that_has_waited_too_long_is_admitted(clock):
    kept = Limits(4)
    running, too_large = connection(clock, 8), connection(clock, 16)
    assert (kept.admit(running), kept.admit(too_large)) == ([running], [])
    clock.now = limits.LARGE_QUEUE_SECONDS
    behind = connection(clock, 2)
    assert kept.admit(behind) == []
    clock.now += 1
    assert kept.overdue() == [too_large]
    last = connection(clock, 2)
    assert kept.admit(last) == [behind, last]
    for one in (running, behind, last):
        assert kept.release(one) == []
    whole = connection(clock, 16)
    assert kept.admit(whole) == [whole]
