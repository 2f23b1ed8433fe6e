"""The limit on the waiting time during an overload, with simulated queues of several processes."""

from types import SimpleNamespace

import pytest

from cdb.worker import wait_limit
from cdb.worker.wait_limit import WaitLimit

STEP = 0.05


@pytest.fixture
def clock(monkeypatch):
    """The time, to be set as its attribute `now`, of processes that accept bursts for 10 s and then a wait of 2 s."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(wait_limit, "monotonic", lambda: clock.now)
    monkeypatch.setattr(wait_limit, "BURST_SECONDS", 10)
    monkeypatch.setattr(wait_limit, "MAX_WAIT_SECONDS", 2)
    monkeypatch.setattr(wait_limit, "_shared", [0.0, 0.0])
    return clock


class Process:
    """A process that handles requests at a fixed rate and refuses those that its limit refuses."""

    def __init__(self, clock, rate):
        self.clock, self.rate, self.limit = clock, rate, WaitLimit()
        self.arrivals, self.waits, self.refused = [], [], 0
        self.credit = 0.0

    def step(self, offered):
        """Let requests arrive, then handle some, in a step of time."""
        for _ in range(offered):
            if self.limit.is_exceeded:
                self.refused += 1
            else:
                self.arrivals.append(self.clock.now)
                self.limit.update(len(self.arrivals))
        self.credit += self.rate * STEP
        while self.credit >= 1 and self.arrivals:
            self.credit -= 1
            self.waits.append(self.clock.now - self.arrivals.pop(0))
            self.limit.count_finished()
        self.credit = min(self.credit, 1)
        self.limit.update(len(self.arrivals))


def play(clock, processes, seconds, offered_per_s):
    """Offer requests to the processes for some time; returns the waits and the refusals in this time, of all together."""
    for process in processes:
        process.waits, process.refused = [], 0
    for number in range(round(seconds / STEP)):
        first, last = (round(step * STEP * offered_per_s) for step in (number, number + 1))
        for process in processes:
            process.step(last - first)
        clock.now += STEP
    return [wait for process in processes for wait in process.waits], sum(process.refused for process in processes)


@pytest.mark.parametrize("rate", [100, 700])
@pytest.mark.parametrize("factor", [1.5, 3, 10])
def test_after_the_time_of_a_burst_an_overload_is_limited(clock, rate, factor):
    processes = [Process(clock, rate)]
    waits, refused = play(clock, processes, 10, factor * rate)
    assert refused == 0 and max(waits) > 3
    # The queue of the first seconds is emptied.
    play(clock, processes, 10 * factor, factor * rate)
    waits, refused = play(clock, processes, 30, factor * rate)
    assert max(waits) < 2.3 and min(waits) > 1
    # Nothing of the capacity is lost.
    assert len(waits) == pytest.approx(30 * rate, rel=0.01)
    assert refused == pytest.approx(30 * rate * (factor - 1), rel=0.05)


def test_a_burst_is_handled_completely_however_long_it_takes_and_another_one_after_it(clock):
    process = Process(clock, 100)
    for _ in range(2):
        process.step(3000)
        waits, refused = play(clock, [process], 31, 0)
        assert (process.arrivals, refused) == ([], 0) and max(waits) > 29
        play(clock, [process], 3, 0)


def test_a_busy_service_that_is_not_overloaded_refuses_nothing(clock):
    process = Process(clock, 100)
    process.step(150)
    # The queue is never empty, and the wait is 1.5 s.
    waits, refused = play(clock, [process], 60, 100)
    assert refused == 0 and 1.3 < max(waits) < 1.7


def test_a_process_that_starts_in_an_overload_has_no_time_for_a_burst(clock):
    old = Process(clock, 100)
    play(clock, [old], 40, 300)
    new = Process(clock, 100)
    waits, refused = play(clock, [new, old], 9, 300)
    assert max(waits) < 3 and refused > 0


def test_threads_that_finish_nothing_are_an_overload(clock):
    process = Process(clock, 0)
    _, refused = play(clock, [process], 10, 20)
    assert refused == 0
    _, refused = play(clock, [process], 1, 20)
    assert refused == pytest.approx(20, abs=2)
    process.rate = 100
    play(clock, [process], 5, 0)
    assert not process.limit.is_exceeded and process.limit.is_over
    # Then a short queue at a time is no overload, although the last rate was 0.
    for _ in range(100):
        _, refused = play(clock, [process], 0.5, 80)
        assert refused == 0


def test_a_process_that_has_stopped_does_not_make_others_refuse(clock):
    stuck, other = Process(clock, 0), Process(clock, 100)
    play(clock, [stuck, other], 20, 20)
    assert stuck.limit.is_exceeded
    for _ in range(20):
        other.step(90)
        play(clock, [stuck, other], 1, 5)
    assert stuck.refused > 0 and other.refused == 0


def test_the_time_of_an_overload_is_counted(clock):
    process = Process(clock, 100)
    before = process.limit._overload_seconds._value.get()
    play(clock, [process], 40, 400)
    counted = process.limit._overload_seconds._value.get() - before
    assert 20 < counted < 31
